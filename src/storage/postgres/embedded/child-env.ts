/** Nothing of the caller's environment: PGOPTIONS, PGPORT or LD_LIBRARY_PATH would change what the binaries do. */
export const CHILD_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
};
