/** Short names for what openapi.yaml describes. schema.d.ts is generated from it. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type SignedIn = Schemas['SignedIn'];
export type Account = Schemas['Account'];
export type APIToken = Schemas['APIToken'];
export type NewAPIToken = Schemas['NewAPIToken'];
export type Login = Schemas['Login'];
export type Enrolment = Schemas['Enrolment'];
export type Status = Schemas['Status'];
export type Figure = Schemas['Figure'];
export type Figures = Schemas['Figures'];
export type Client = Schemas['Client'];
export type Scope = Schemas['Scope'];
export type NewToken = Schemas['NewToken'];
export type Session = Schemas['Session'];
export type Endpoint = Schemas['Endpoint'];
export type Claim = Schemas['Claim'];
export type Certificate = Schemas['Certificate'];
export type ReportedError = Schemas['ReportedError'];
export type Domain = Schemas['Domain'];
export type Policy = Schemas['Policy'];
export type PolicyDocument = Schemas['PolicyDocument'];
export type Question = Schemas['Question'];
export type Explanation = Schemas['Explanation'];
export type Access = Schemas['Access'];
export type AccessPage = Schemas['AccessPage'];
export type AuditEntry = Schemas['AuditEntry'];
export type AuditPage = Schemas['AuditPage'];
export type AuditVerdict = Schemas['AuditVerdict'];
export type Sink = Schemas['Sink'];
export type SinkTest = Schemas['SinkTest'];
export type Node = Schemas['Node'];
export type Settings = Schemas['Settings'];
export type ErrorCode = Schemas['ErrorCode'];

export interface List<T> {
  items: T[];
}
