"""What becomes of jobs: outcomes, records of finished jobs, and who wants to know."""
