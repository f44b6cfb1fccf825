/* status.c: descriptions of status codes, and pln_text. */

#include "base/base.h"

const char *pln_status_text(pln_status status) {
  switch (status) {
  case PLN_OK: return "ok";
  case PLN_ERR_NOMEM: return "out of memory";
  case PLN_ERR_ARGUMENT: return "wrong argument";
  case PLN_ERR_TYPE: return "ill-typed program";
  case PLN_ERR_FORMAT: return "malformed input";
  case PLN_ERR_IO: return "input or output failed";
  case PLN_ERR_UNSUPPORTED: return "not supported";
  case PLN_ERR_LIMIT: return "limit reached";
  case PLN_ERR_NAME: return "unknown name";
  case PLN_ERR_INVALID: return "broken IR";
  case PLN_ERR_CALLBACK: return "a callback failed";
  case PLN_ERR_INTERRUPTED: return "interrupted";
  case PLN_N_STATUS: break;
  }
  return "unknown status";
}

pln_slice pln_text(const char *s) {
  return s ? (pln_slice){s, strlen(s)} : (pln_slice){"", 0};
}
