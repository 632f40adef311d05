import { asNodeError } from '../../kit/errors.js'
import { prometheusLines } from '../../kit/prometheus.js'
import type { NodeApi, Principal } from '../../ports/node-api.js'
import { HttpError } from './http-error.js'
import type { HttpRoute } from './route.js'

/** `GET /metrics`, for tokens with the scope read: counts and times of the node in the text format of Prometheus. */
export function metricsRoute({ apiFor }: { apiFor(principal: Principal): NodeApi }): HttpRoute {
  return {
    path: '/metrics',
    methods: ['GET'],
    handle: async (_request, response, { principal }) => {
      const snapshot = await apiFor(principal).call('node.metrics', {}).catch(refused)
      const body = Buffer.from(`${prometheusLines(snapshot).join('\n')}\n`)
      const headers = {
        'content-type': 'text/plain; version=0.0.4; charset=utf-8',
        'content-length': body.length,
        'cache-control': 'no-store'
      }
      response.writeHead(200, headers).end(body)
    }
  }
}

function refused(error: unknown): never {
  const { code, message } = asNodeError(error)
  throw code === 'FORBIDDEN' ? new HttpError(403, { code, message }) : error
}
