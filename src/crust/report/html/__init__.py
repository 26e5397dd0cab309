"""HTML documents that need nothing else: what comes from the data is shown as text, never as markup."""
