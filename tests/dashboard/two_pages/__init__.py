"""A dashboard of two pages, to show what Streamlit does with ticks that come late."""
