import { parseSecretJson } from '../platform/secret-json.js';
import { PrincipalsFileError } from './principal-entry.js';

/** The JSON of a principals file or a key set; a PrincipalsFileError names the file, and quotes nothing of it. */
export function parseJsonFile(text: string, path: string): unknown {
  return parseSecretJson(text, (what) => new PrincipalsFileError(`${path}: ${what}`));
}
