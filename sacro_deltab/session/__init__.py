"""The parts of a session: what people said, the budget, linked tables, the journal, the folder, the report."""
