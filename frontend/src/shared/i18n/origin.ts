import type { Sentence } from './sentences';

/**
 * What is wrong with a local service, as the daemon says it in its Web UI and reports
 * it to the relay. A test holds it against the daemon's code.
 */
export const originSentences: readonly Sentence[] = [
  [
    'nothing listens at the local address {0}, but something does at {1}; use localhost instead of 127.0.0.1',
    '本地地址 {0} 上没有服务在监听，但 {1} 上有；请用 localhost 代替 127.0.0.1',
  ],
  ['nothing listens at the local address {0}', '本地地址 {0} 上没有服务在监听'],
  ['this tunnel has no path {0}', '此隧道没有路径 {0}'],
  ['the local service at {0} does not accept connections', '{0} 的本地服务不接受连接'],
  ['the local service at {0} cannot be reached: {1*}', '无法连接 {0} 的本地服务：{1*}'],
  [
    'the local service at {0} does not answer with TLS that can be trusted: {1*}',
    '{0} 的本地服务没有以可信的 TLS 响应：{1*}',
  ],
  ['it does not speak TLS; set local_scheme to http', '它不使用 TLS；请将服务协议设为 http'],
  ['no answer within {0}', '{0} 内没有响应'],
  [
    "an answer was dropped: it is too long for a visitor whose address may be forged; the relay's operator can allow more with udp_amplification",
    '有一个回应未被转发：访客的地址可能是伪造的，而该回应超出了这类访客可得到的长度；中继的运营者可以用 udp_amplification 放宽',
  ],
  ['connection refused', '连接被拒绝'],
  ['server misbehaving', 'DNS 服务器出错'],
  ['the name server has not answered', 'DNS 服务器没有回答'],
  ['no such host', '没有这个主机名'],
  ['network is unreachable', '网络不可达'],
];
