"""What each figure means: the texts behind the question marks."""

from __future__ import annotations

LATENCY = (
    "Time from the commit at the source to the end of the scan that captured it, for the newest "
    "captured transaction. An empty scan has no latency."
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
RANGE_ENDS = (
    "`from_lsn` and `to_lsn` lie between the low and the high watermark; both belong to the range. "
    "A range that reaches beyond them is refused."
)
LOG_HELD = (
    "Bytes of the source's log that may not be truncated until capture has read them. "
    "It grows while capture is stopped or slow."
)
CAPTURED_TABLES = "Source tables with at least one capture instance; a table may have two."
EMPTY_SCANS = "Scans that found no transaction of a tracked table, since the last that did."
CEILING = (
    "`maxtrans` × `maxscans` / `pollinginterval` of the running configuration: more transactions per second "
    "are never captured. With polling interval 0 there is no ceiling."
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
