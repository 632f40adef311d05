import type { Assert } from 'brittle'
import type { BadMesh } from './mesh-scene.js'
import { toldOfCall, type BadCall } from './mesh-scene.js'
import type { BadScene } from './scene.js'
import { type A2AWire, type BadRequest, type HttpWire, type IN_WIRES, type OUT_WIRES, told } from './wires.js'

/** Where bad input may come from. */
export type BadWire = (typeof IN_WIRES)[number] | (typeof OUT_WIRES)[number]

/** The places of one item, made when they are asked for. */
export interface Places {
  http(): Promise<BadScene>
  mesh(): Promise<BadMesh>
}

/** What is tried on a wire; or why it cannot happen there. */
export type Cell = ((t: Assert, places: Places) => Promise<void>) | string

/** The cells of an item on the wires over HTTP and over the mesh. */
export type Row = Readonly<Record<(typeof IN_WIRES)[number], Cell>>

/** Each request is told so on the wire, and nothing was done. */
export function refused(wire: HttpWire, expected: string, requests: readonly BadRequest[]): Cell {
  return async (t, { http }) => {
    const it = await http()
    const before = it.talk.tasks.length
    for (const request of requests) t.is(told(wire, await it.ask(request)), expected, `${wire}: ${shown(request)}`)
    t.is(it.talk.tasks.length, before, 'nothing was done')
  }
}

/** The same of calls over the mesh. */
export function refusedCalls(expected: string, calls: readonly BadCall[]): Cell {
  return async (t, { mesh }) => {
    const it = await mesh()
    for (const call of calls)
      t.is(toldOfCall(await it.call(call)), expected, `mesh: ${JSON.stringify(call).slice(0, 200)}`)
  }
}

/** A cell that is no reason. */
export function tried(cell: Cell): Exclude<Cell, string> {
  if (typeof cell === 'string') throw new Error(cell)
  return cell
}

/** Cells of the wires that speak A2A over HTTP. */
export function onA2A(cell: (wire: A2AWire) => Cell): Readonly<Record<A2AWire, Cell>> {
  return {
    'JSON-RPC 1.0': cell('JSON-RPC 1.0'),
    'JSON-RPC 0.3': cell('JSON-RPC 0.3'),
    'REST 1.0': cell('REST 1.0'),
    'REST 0.3': cell('REST 0.3')
  }
}

/** Cells of all wires over HTTP. */
export function onHttp(cell: (wire: HttpWire) => Cell): Omit<Row, 'mesh'> {
  return { ...onA2A(cell), facade: cell('facade'), 'AG-UI': cell('AG-UI') }
}

function shown({ method = '', place, headers = {}, body = '' }: BadRequest): string {
  return `${method} ${place} ${JSON.stringify(headers)} ${(typeof body === 'string' ? body : JSON.stringify(body)).slice(0, 120)}`
}
