"""Charts: pure functions from data to a `Chart` (Plotly figure, takeaway in words, its table)."""
