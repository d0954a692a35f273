"""Plans: what was reviewed is what is applied, once."""
