"""What each figure means: the texts behind the question marks."""

from __future__ import annotations

LATENCY = (
    "Time from the commit at the source to the end of the scan that captured it, for the newest "
    "captured transaction. An empty scan has no latency."
)
LATENCY_ALERT = (
    "Red: from where on capture that is behind is an alert (page Settings). The scale `auto` is logarithmic "
    "where one slow scan would press all others flat."
)
THROUGHPUT = (
    "Captured transactions per second, the mean of the last minute with scans. "
    "Only transactions that touched a tracked table count."
)
CAPTURED = "Commands (row changes) captured since the agent started: `command_count` of session 0."
HIGH_WATERMARK = (
    "Commit time of the newest transaction that readers can see: `max_lsn`. "
    "A range query may not ask beyond it."
)
LOW_WATERMARK = "The oldest LSN a range query of this capture instance may ask for: `min_lsn`."
VALIDITY = (
    f"{LOW_WATERMARK}\n\n{HIGH_WATERMARK}\n\n"
    "Dashed: the retention horizon, the cleanup job's retention before the last captured commit. Dotted: the "
    "low watermark if cleanup ran now. It moves up to the first commit from the horizon on, never past what "
    "the slowest client of the instance has acknowledged.\n\n"
    "Grey: for a minute or longer no scan read the log, since capture was stopped, failed or had no agent. "
    "Intervals go on over it: what was committed meanwhile was captured afterwards.\n\n"
    "It spans what there is to see, whatever the range in the header; dragging zooms it, a double click "
    "takes that back. A click on a lane opens the instance on page Tables."
)
RANGE_ENDS = (
    "`from_lsn` and `to_lsn` lie between the low and the high watermark; both belong to the range. "
    "A range that reaches beyond them is refused."
)
LOG_HELD = (
    "Bytes of the source's log that may not be truncated until capture has read them. "
    "It grows while capture is stopped or slow."
)
LOG_LIMIT = (
    "The limit is `max_slot_wal_keep_size` of the source, as pg_replication_slots tells it: what is held and "
    "what is safe yet (`safe_wal_size`). Beyond it log that capture needs is lost. Points are the data "
    "collector's snapshots, the last one is of now."
)
CAPTURE_STATE = (
    "What capture does: capturing, quiet (nothing to capture is committed), stalled, stopped, or unreachable "
    "where the source does not answer."
)
CAPTURED_TABLES = "Source tables with at least one capture instance; a table may have two."
EMPTY_SCANS = "Scans that found no transaction of a tracked table, since the last that did."
CEILING = (
    "`maxtrans` × `maxscans` / `pollinginterval` of the running configuration: more transactions per second "
    "are never captured. With polling interval 0 there is no ceiling. The line changes where the job began "
    "to run with other parameters, and ends where it did."
)
PHASES = {
    1: "reading configuration",
    2: "first scan, hash table",
    3: "second scan",
    4: "building rows",
    5: "writing rows",
    6: "schema versioning",
    7: "last scan",
    8: "done",
}
ROW_FILTERS = {
    "all": "One row for each change; an update shows its new values and the mask of what changed.",
    "all update old": "As `all`, and an update also shows the values before: old → new.",
    "all with mask": "One row for each key with its final values; the mask says which columns changed.",
    "all with merge": "One row for each key, `merge` for an insert or update: for a target that can upsert.",
}
NET_ALL = "One row for each key changed in the range, with its final values; no mask."
PARAMETERS = {
    "maxtrans": "Most transactions that one scan cycle takes from the log.",
    "maxscans": "Most scan cycles before the job pauses for `pollinginterval`.",
    "continuous": "On: the job scans until it is stopped. Off: it drains once and ends.",
    "pollinginterval": "Seconds between two drains of the log; 0 means no pause.",
}
TERMS = {
    "capture instance": "A tracked table's change table, columns and query functions; at most two a table.",
    "change table": "`cdc.<capture_instance>_CT`: a row for each insert and delete, two for each update.",
    "LSN": "Log sequence number: the place of a commit in the source's log, in ten bytes that sort.",
    "`__$start_lsn`": "The LSN of the commit: the same for all rows of a transaction.",
    "`__$command_id`": "The order of commands within a transaction, over all tables.",
    "`__$operation`": "1 delete, 2 insert, 3 and 4 an update's values before and after; 5 merge.",
    "`__$update_mask`": "One bit for each captured column, set where an update changed it.",
    "validity interval": "From the low to the high watermark: the range of LSNs that can be asked for.",
    "low watermark": "The low endpoint of an instance; cleanup moves it. `sys.fn_cdc_get_min_lsn`.",
    "high watermark": "The newest captured commit of the database. `sys.fn_cdc_get_max_lsn`.",
    "all changes": "Every change of a range, in order.",
    "net changes": "One row for each key changed in a range: its outcome.",
    "capture job": "Reads the source's log, fills the change tables. Stopped, it loses nothing.",
    "cleanup job": "Moves low endpoints by retention, then deletes what is below. Daily at 02:00.",
    "retention": "How many minutes changes are kept, counted back from the last captured commit.",
    "scan": "One pass of the capture job over new log, in phases 1 to 8; sessions are its rows in the DMV.",
    "empty scan": "A scan that found no transaction of a tracked table.",
    "latency": LATENCY,
    "ceiling": CEILING,
    "gating role": "Whoever reads an instance's changes must be its member, and may select all columns.",
}
"""The words of change data capture, for who meets them first."""

CLEANUP_PARAMETERS = {
    "retention": "Minutes that changes are kept, counted back from the last captured commit.",
    "threshold": "Most rows that one statement deletes where a file also holds rows that stay.",
}
CLEANUP_PREVIEW = (
    "What the job would do if it ran now, worked out by the rules that it runs by: low watermarks first "
    "go up "
    "to the first commit within the retention, never past a client, then the rows below them go. Files with "
    "nothing but such rows go in one statement; the others are rewritten, `threshold` rows at a time."
)
CLEANUP_EFFECT = (
    "What a run came to: each low watermark before and after it, and the rows that it deleted from each "
    "change table and from `cdc.lsn_time_mapping`."
)
CLIENTS = (
    "Consumers that cleanup waits for: a low watermark never passes what the slowest client of its instance "
    "has acknowledged. One that stays silent for longer than its limit is dropped by the next cleanup."
)
COMPACTION = (
    "Capture writes a small file for each scan and table. Compaction makes few of many and removes "
    "files that "
    "nothing refers to any more; it runs after each cleanup by itself. No row changes."
)
SNAPSHOTS = (
    "What monitoring shows, kept: each snapshot is appended to the tables of `custom_snapshots`. Bands "
    "are gaps: "
    "of these times nothing is known but what sessions tell later."
)
COLLECTED_INTO = (
    "Delta tables that have a row for each row of the view and snapshot; they expire by whole days."
)
HISTORY = {
    "latency": "The worst latency of sessions with transactions that began in each stretch, whole seconds.",
    "tran": "Captured transactions a second, the mean of each stretch.",
    "cmd": "Captured commands (row changes) a second, the mean of each stretch.",
    "empty": "The longest run of scans without a CDC transaction that began in each stretch.",
    "errors": "Errors of the sessions that began in each stretch.",
    "held": "The most log that the source kept for capture, as the snapshots of each stretch saw it, and "
    "the limit beyond which any is lost (`max_slot_wal_keep_size`).",
}
HEAT_MAP = (
    "Rows that each change table gained between snapshots, the busiest tables; an update has two. Snapshots "
    "count rows, not operations: a click on a cell shows its changes. On the logarithmic scale quiet tables "
    "show too. A stretch in which cleanup took more than capture added shows none."
)
TUNER = (
    "From the commit to its capture, for the slowest change of the week. The job that looks at the log least "
    "often and still meets it is recommended, if it could also take twice the busiest minute."
)
