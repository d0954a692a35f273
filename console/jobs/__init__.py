"""The job queue: jobs, claims, attempts and logs."""
