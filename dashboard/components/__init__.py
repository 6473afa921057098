"""Parts of pages: each draws one thing with Streamlit and calls what it is given."""
