-- The shop's orders. flowctl makes shop.db from this file when it is not there.
CREATE TABLE orders (
  id     TEXT PRIMARY KEY,
  item   TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('paid', 'shipped', 'refunded')),
  cents  INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('A1001', 'a green mug',      'paid',    1290),
  ('A1002', 'a pair of socks',  'paid',     890),
  ('A1003', 'a reading lamp',   'shipped', 4900);
