"""Where changes come from. Each kind of source is one folder here behind `base.LogSource`."""
