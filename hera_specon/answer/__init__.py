"""What a sweep came to, as outputs of its template: the best trial, all of them as a table, and the model."""
