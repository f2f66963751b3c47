/** Short names for what openapi.yaml describes. schema.d.ts is generated from it. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type Status = Schemas['Status'];
export type AuthStatus = Schemas['AuthStatus'];
export type Config = Schemas['Config'];
export type Setting = Schemas['Setting'];
export type Endpoint = Schemas['Endpoint'];
export type Tunnel = Schemas['Tunnel'];
export type TunnelPath = Schemas['TunnelPath'];
export type TunnelType = Schemas['TunnelType'];
export type TunnelMode = Schemas['TunnelMode'];
export type TunnelState = Schemas['TunnelState'];
export type TunnelCreate = Schemas['TunnelCreate'];
export type TunnelUpdate = Schemas['TunnelUpdate'];
export type TunnelPolicy = Schemas['TunnelPolicy'];
export type Visit = Schemas['Visit'];
export type Invitation = Schemas['Invitation'];
export type VisitState = Schemas['VisitState'];
export type TunnelEvent = Schemas['TunnelEvent'];
export type EndpointEvent = Schemas['EndpointEvent'];
export type ClearedEvent = Schemas['ClearedEvent'];
export type MissedEvent = Schemas['MissedEvent'];
export type RequestSummary = Schemas['RequestSummary'];
export type RequestDetail = Schemas['RequestDetail'];
export type Message = Schemas['Message'];
export type Body = Schemas['Body'];
export type SocketMessage = Schemas['SocketMessage'];
export type Header = Schemas['Header'];
export type Replay = Schemas['Replay'];
export type LogEntry = Schemas['LogEntry'];
export type LogLevel = Schemas['LogLevel'];
export type Check = Schemas['Check'];
export type SpeedReport = Schemas['SpeedReport'];
export type ErrorCode = Schemas['ErrorCode'];
export type ProblemBody = Schemas['Error'];

export interface List<T> {
  items: T[];
}

/** What the event stream brings, by event name. */
export interface Events {
  status: Status;
  tunnel: TunnelEvent;
  endpoint: EndpointEvent;
  request: RequestSummary;
  cleared: ClearedEvent;
  log: LogEntry;
  missed: MissedEvent;
}
