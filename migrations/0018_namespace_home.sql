-- Which database of the installation a namespace lives in; only the main database's table is used. One without a row
-- lives in the main database.
CREATE TABLE writ.namespace_home (
  namespace text COLLATE "C" NOT NULL,
  database  text COLLATE "C" NOT NULL,
  CONSTRAINT namespace_home_pkey PRIMARY KEY (namespace)
);
