"""How results are shown: tables in Markdown and CSV, curves as pictures, and one page that needs nothing else."""
