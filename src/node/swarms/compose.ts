import { Joining, type JoiningDeps } from './consensus/joining.js'
import { CoordinatorRole } from './consensus/leadership.js'
import type { ParticipantDeps } from './consensus/participant.js'
import { Participants } from './consensus/participants.js'
import { ReplicatedSwarm, type OpenMembership } from './consensus/replicated-swarm.js'
import { Coordinator } from './coordinator.js'
import type { HeadDeps, SwarmLaunch } from './create.js'
import { Eligibility, type SurveyDeps } from './eligibility.js'
import type { SwarmObserver } from './finished-swarm.js'
import { Launcher } from './launcher.js'
import { LeaseRequests, type LeaseRequestsDeps } from './lease-requests.js'
import { SwarmLifecycle, type SwarmLifecycleDeps } from './lifecycle.js'
import { SwarmMemory } from './memory.js'
import { Recruiter, type SwarmOffersDeps } from './offers.js'
import type { SwarmStore } from './store.js'
import { SwarmTable } from './swarm-table.js'

/** Dependencies of the swarms of a node. */
export type SwarmsDeps = HeadDeps &
  LeaseRequestsDeps &
  SwarmOffersDeps &
  SurveyDeps &
  ParticipantDeps &
  Pick<JoiningDeps, 'ledgerName' | 'ledgerQuota'> &
  Pick<SwarmLifecycleDeps, 'audit' | 'events' | 'tasks'> & {
    readonly swarmStore: SwarmStore
    readonly limits: { readonly leaseMs: number }
  }

/** Builds the swarms of a node. */
export function createSwarmTable(node: SwarmsDeps): SwarmTable {
  const memory = new SwarmMemory()
  const eligibility = new Eligibility(node)
  const lifecycle = new SwarmLifecycle({ ...node, memory, eligibility })
  const deps = { ...node, memory, eligibility, lifecycle }
  const createCoordinator = (launch: SwarmLaunch, observer: SwarmObserver<Coordinator> = lifecycle): Coordinator =>
    new Coordinator(
      {
        ...node,
        observer,
        hasCapacity: (bytes) => memory.hasCapacity(bytes),
        createLeases: (swarm) => new LeaseRequests(node, swarm),
        createRecruiter: (swarm) => new Recruiter(node, swarm)
      },
      launch
    )
  const createReplica = (membership: OpenMembership): ReplicatedSwarm =>
    new ReplicatedSwarm(
      {
        ...node,
        observer: lifecycle,
        createRole: (swarm) => new CoordinatorRole({ ...deps, createCoordinator }, swarm)
      },
      membership
    )
  const joining = new Joining({ ...deps, createReplica })
  const participants = new Participants({ ...deps, joining, createReplica })
  const launcher = new Launcher({ ...deps, participants, createCoordinator })
  return new SwarmTable({ ...deps, participants, launcher })
}
