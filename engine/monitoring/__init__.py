"""What the monitoring views show, and the verdict over it: pure rules over control data."""
