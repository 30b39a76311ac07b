import { serveJobs } from '../platform/job-server.js';
import { doMapJob } from './map-jobs.js';

// The process of map-workshop.ts.
serveJobs(doMapJob);
