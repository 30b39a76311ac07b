import { parseResource } from '../domain/resource.js';

/** The coordinator's own rule for resources: what the target kit and the gateways see of it, they see by this layer. */
export { covers, lengthFlaw, segmentFlaw } from '../domain/resource.js';

/** Whether a text is the path of a resource in normal form. */
export const isResource = (text: string): boolean => parseResource(text).ok;
