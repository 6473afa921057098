"""Questions to the lake: all changes, net changes, LSNs and times. The same on classic and Connect sessions."""
