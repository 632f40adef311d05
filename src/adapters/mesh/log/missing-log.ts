import type { LogProblem } from '../../../ports/node-api.js'

/** Of a node that has no log of its mesh: it has just joined, or its store was moved aside. */
export const LOG_NOT_HERE: LogProblem = {
  code: 'PEER_OFFLINE',
  message:
    'the log of the mesh is not on this disk: other members, their agents and documents are unknown until a member is met; without another member only a backup has it (a2a-node restore)',
  next: 'a2a-node start   # on another machine of the mesh'
}
