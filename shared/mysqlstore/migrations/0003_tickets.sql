-- Whether a claim needs an entry ticket: '' no, else how a buyer gets one.
ALTER TABLE sales ADD COLUMN ticket VARCHAR(8) NOT NULL DEFAULT '' CHECK (ticket IN ('', 'signed', 'work'));
