-- Transfers between accounts, for SQLite and PostgreSQL. MariaDB has no UPDATE … RETURNING: there a SELECT of the same columns
-- follows each UPDATE.

-- setup
CREATE TABLE account (
    id BIGINT PRIMARY KEY,
    balance BIGINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    writer BIGINT NOT NULL DEFAULT 0
);
INSERT INTO account (id, balance) VALUES (1, 100), (2, 100), (3, 100), (4, 100);

-- transaction weight 3
-- let from in 1..4
-- let to in 1..4 except from
-- let sum in 1..5
SELECT id, balance, version, writer FROM account WHERE id = :from;
UPDATE account SET balance = balance - :sum, version = version + 1, writer = :writer
    WHERE id = :from RETURNING id, version, writer;
UPDATE account SET balance = balance + :sum, version = version + 1, writer = :writer
    WHERE id = :to RETURNING id, version, writer;

-- transaction
SELECT id, balance, version, writer FROM account;

-- teardown
DROP TABLE account;
