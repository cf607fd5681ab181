"""Experiments: compose, build, run, record, collect and draw. Run modules with `python -m experiments.<name>`."""
