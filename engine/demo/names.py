"""Invented names of the demo company. Saltmarsh Instruments makes tide gauges; any likeness is chance."""

DEPARTMENTS = (
    ("Gauge Design", "Research and Development"),
    ("Hydrology", "Research and Development"),
    ("Field Trials", "Research and Development"),
    ("Foundry", "Manufacturing"),
    ("Glassworks", "Manufacturing"),
    ("Calibration", "Quality Assurance"),
    ("Inspection", "Quality Assurance"),
    ("Goods Inward", "Inventory Management"),
    ("Stores", "Inventory Management"),
    ("Packing and Dispatch", "Inventory Management"),
    ("Harbour Sales", "Sales and Marketing"),
    ("Catalogue", "Sales and Marketing"),
    ("Accounts", "Executive General and Administration"),
    ("People", "Executive General and Administration"),
    ("Information Services", "Executive General and Administration"),
    ("Board Room", "Executive General and Administration"),
)
GROUPS = tuple(dict.fromkeys(group for _, group in DEPARTMENTS))
FIRST_NAMES = (
    "Ada", "Amara", "Bram", "Célia", "Dafne", "Edwin", "Farah", "Gustav", "Hanne", "Ilya", "Jonna", "Kofi",
    "Lárus", "Mireille", "Nadia", "Oskar", "Priya", "Quentin", "Rosalind", "Søren", "Tomasz", "Ulla",
    "Vikram", "Wanda", "Xenia", "Yusuf", "Zoë",
)  # fmt: skip
LAST_NAMES = (
    "Abernethy", "Brackwater", "Castellan", "Dunmore", "Eastlake", "Fairwind", "Gullstrand", "Haverford",
    "Inchcape", "Jörgensen", "Kittiwake", "Lindqvist", "Marram", "Norrland", "Oystermouth", "Penhaligon",
    "Quayle", "Reedham", "Saltash", "Thornback", "Underhill", "Vance", "Westerly", "Yarrow",
)  # fmt: skip
JOB_TITLES = (
    "Instrument Maker", "Calibration Technician", "Hydrologist", "Design Engineer", "Glass Blower",
    "Stores Clerk", "Dispatcher", "Sales Representative", "Accountant", "Systems Keeper", "Foundry Hand",
)  # fmt: skip
LOCATIONS = (
    "Quayside Store", "Upper Loft", "Brass Room", "Glass Room", "Paint Shop", "Calibration Bench",
    "Spares Cage", "Dispatch Bay", "Barge Shed", "Overflow Barn",
)  # fmt: skip
PRODUCT_KINDS = (
    "Tide Gauge", "Stilling Well", "Float Wheel", "Barometer", "Current Meter", "Chart Drum", "Pressure Cell",
    "Level Staff", "Mooring Ring", "Data Logger",
)  # fmt: skip
PRODUCT_SERIES = ("Spring", "Neap", "Estuary", "Harbour", "Skerry", "Lagoon", "Fjord", "Delta")
COLORS = ("Black", "Brass", "Navy", "Signal Red", "White")
SIZES = ("S", "M", "L", "XL", "42")
TRADES = (
    "Harbour Board", "Marine Supply", "Water Authority", "Boatyard", "Survey Partners", "Port Company",
    "Coastal Institute", "Lock Keepers",
)  # fmt: skip
CITIES = (
    "Port Ellery", "Saint Brannoc", "Norhaven", "Vilamar", "Østervik", "Kaldsund", "Marenza", "Great Sedge",
)  # fmt: skip
COMMENTS = ("Leave with the harbour master", "Fragile: glass", "Rush — spring tide on Friday", "Call first")
