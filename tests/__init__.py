"""The suite. One file per intention; the folders follow the tree."""
