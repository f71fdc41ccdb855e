-- 订单表。shop.db 不存在时由 flowctl 用这个文件建立。
CREATE TABLE orders (
  id     TEXT PRIMARY KEY,
  item   TEXT NOT NULL,
  status TEXT NOT NULL,
  fen    INTEGER NOT NULL,
  reason TEXT
);
INSERT INTO orders (id, item, status, fen) VALUES
  ('2024-001', '电热水壶', 'paid', 12900),
  ('2024-002', '台灯', 'paid', 8900);
