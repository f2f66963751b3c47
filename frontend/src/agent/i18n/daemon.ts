import { prefs, type Lang } from '../../shared/stores/prefs.svelte';

/**
 * The daemon speaks English. These are its sentences, with what varies in braces,
 * and what they are in Chinese; a test holds them against the daemon's code.
 */
const chinese: readonly [said: string, means: string][] = [
  ['the auth token', '认证令牌'],
  ['none is configured', '尚未配置'],
  ['{0}, for the relay {1}', '{0}，中继为 {1}'],
  [
    "Get a token from the relay's operator and run `adit login TOKEN`, or paste it into the Web UI.",
    '向中继的运营者索取令牌，然后运行 `adit login TOKEN`，或粘贴到此页面。',
  ],
  ["this machine's clock", '本机时钟'],
  ['{0}, which is before this program was made', '{0}，早于本程序的构建时间'],
  [
    'Set the clock, best by NTP: certificates are judged by it.',
    '请校准时钟（最好使用 NTP）：证书的有效期以它为准。',
  ],
  ['HTTPS_PROXY and ALL_PROXY', 'HTTPS_PROXY 与 ALL_PROXY'],
  ['none is set', '均未设置'],
  ['{0} is set to what is no address', '{0} 的值不是有效地址'],
  [
    'Set it to an address such as http://proxy.example:3128, or not at all.',
    '请设为类似 http://proxy.example:3128 的地址，或不要设置。',
  ],
  ['{0} is {1}; TLS goes through it, UDP does not', '{0} 为 {1}；TLS 经由它，UDP 不经由它'],
  ['the address of the relay', '中继的地址'],
  ['the address of {0}', '{0} 的地址'],
  ['TCP to the relay', '到中继的 TCP'],
  ['TCP to {0}', '到 {0} 的 TCP'],
  ['UDP to the relay', '到中继的 UDP'],
  ['UDP to {0}', '到 {0} 的 UDP'],
  ['no relay is known yet', '尚不知道中继'],
  ['there is no session to see it by', '没有会话可供判断'],
  [
    "See whether this machine has a network and a name server; if it has, ask the relay's operator for its name.",
    '请检查本机的网络与 DNS 服务器；若均正常，请向中继的运营者核对其域名。',
  ],
  ["the relay's address is not known", '中继的地址未知'],
  [
    'Where UDP is blocked, TCP to this port is the way through: let it out through the firewall, and see that the relay runs.',
    'UDP 被拦截时要靠此端口的 TCP：请在防火墙放行，并确认中继正在运行。',
  ],
  ['the relay accepts connections', '中继接受连接'],
  ['the session runs over it', '会话正在使用它'],
  [
    'the session runs over TCP, which is slower on bad networks',
    '会话正在使用 TCP，在差的网络上较慢',
  ],
  [
    'Let UDP to this port out through the firewall; the session then moves over by itself.',
    '请在防火墙放行到此端口的 UDP；会话随后会自动切换。',
  ],
  ['the session with the relay', '与中继的会话'],
  ['connected over {0}, round trip {1} ms', '已通过 {0} 连接，往返 {1} 毫秒'],
  ['Run `adit resume`.', '请运行 `adit resume`，或在托盘菜单中选择继续。'],
  [
    "Ask the relay's operator for a new token and run `adit login TOKEN`.",
    '向中继的运营者索取新令牌，然后运行 `adit login TOKEN`。',
  ],
  [
    'It is tried again by itself; the checks above say what is in its way.',
    '会自动重试；上面的检查说明了阻碍所在。',
  ],
  ['unconfigured', '尚未配置'],
  ['connecting', '正在连接'],
  ['connecting: {0}', '正在连接：{0}'],
  ['reconnecting', '正在重新连接'],
  ['reconnecting: {0}', '正在重新连接：{0}'],
  ['paused', '已暂停'],
  ['rejected', '已被拒绝'],
  ['rejected: {0}', '已被拒绝：{0}'],
  ['the local API', '本地 API'],
  ['it answers', '有响应'],
  ['it answers at {0}', '在 {0} 有响应'],
  ['{0}, the local service of the tunnel {1}', '{0}，隧道 {1} 的本地服务'],
  ['the tunnel failed: {0}', '隧道失败：{0}'],
  ['Change the tunnel as the reason says, or delete it.', '请按原因修改隧道，或将其删除。'],
  ['a UDP service does not say whether it is there', 'UDP 服务不会表明自己是否存在'],
  [
    "Start the service on {0}, or change the tunnel's local address; visitors get an error page until then.",
    '请启动 {0} 上的服务，或修改隧道的本地地址；在此之前访问者会看到错误页。',
  ],
  ['it accepts connections', '接受连接'],
  ['no answer within {0}', '{0} 内没有响应'],
  ['connection refused', '连接被拒绝'],
  ['no such host', '没有这个主机名'],
  ['network is unreachable', '网络不可达'],
];

const patterns = chinese.map(([said, means]) => {
  const escaped = said.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\d\}/g, '(.+)');
  return { pattern: new RegExp(`^${escaped}$`, 's'), means };
});

/** Returns what the daemon said in a language; what is not known stays as it is. */
export function translated(text: string, lang: Lang): string {
  if (lang !== 'zh-CN') return text;
  for (const { pattern, means } of patterns) {
    const found = pattern.exec(text);
    if (found) return means.replace(/\{(\d)\}/g, (_, n: string) => found[Number(n) + 1] ?? '');
  }
  return text;
}

/** Returns what the daemon said in the reader's language. */
export const said = (text: string): string => translated(text, prefs.lang);
