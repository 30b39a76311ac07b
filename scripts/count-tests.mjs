// The closing line of a test run, from the runner's own report: N passed, N failed, N skipped.
import { readFileSync } from 'node:fs';

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const skipped = report.numPendingTests + report.numTodoTests;
// A file that could not even be loaded has no tests to count, and has failed.
const broken = report.testResults.filter(
  (file) => file.status === 'failed' && file.assertionResults.length === 0,
).length;
console.log(`${report.numPassedTests} passed, ${report.numFailedTests + broken} failed, ${skipped} skipped`);
