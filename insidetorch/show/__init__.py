"""Showing: excerpts, listings, figures, graphs, timelines and the traces behind them."""
