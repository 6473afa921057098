"""Questions to the lake: all changes, net changes, LSNs and times; on classic and Connect sessions alike."""
