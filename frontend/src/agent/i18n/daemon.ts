import type { Config } from '../api/types';
import { originSentences } from '../../shared/i18n/origin';
import { relaySentences } from '../../shared/i18n/relay';
import { interpreter, type Sentence } from '../../shared/i18n/sentences';
import { visible } from '../../shared/lib/visible';
import { sentence } from '../../shared/lib/words';
import { prefs, type Lang } from '../../shared/stores/prefs.svelte';
import { configSentences } from './config';

/**
 * The daemon speaks English. These are its sentences, with what varies in braces,
 * and what they are in Chinese; a test holds them against the daemon's code.
 */
const chinese: readonly Sentence[] = [
  ['the auth token', '认证令牌'],
  ['another session has taken over', '另一个会话已经接管'],
  [
    'On this network, UDP is slower than TCP. To use TCP, set transport = "tls" under [session] in adit.toml.',
    '此网络对 UDP 的限速比 TCP 更严。在 adit.toml 的 [session] 下写 transport = "tls"，adit 便改用 TCP。',
  ],
  [
    'On this network, UDP is faster than TCP. To use UDP, set transport = "auto" under [session] in adit.toml.',
    '此网络上 UDP 比 TCP 更快。在 adit.toml 的 [session] 下写 transport = "auto"，adit 便改用 UDP。',
  ],
  [
    'On this network, UDP is faster than TCP. Run `adit reconnect`, which tries UDP first.',
    '此网络上 UDP 比 TCP 更快。请运行 `adit reconnect`，它会先尝试 UDP。',
  ],
  ['UDP does not reach the relay at {0}', '没有 UDP 能到达中继 {0}'],
  ['the speed is being measured; try again in a moment', '正在测量速度，请稍后再试'],
  [
    'the relay is too old to measure the speed; ask its operator to update it',
    '中继版本过旧，无法测量速度；请其运营者更新',
  ],
  ['none is configured', '尚未配置'],
  ['{0}, for the relay {1}', '{0}，中继为 {1}'],
  [
    "Get a token from the relay's operator and run `adit login TOKEN`, or paste it into the Web UI.",
    '向中继的运营者索取令牌，然后运行 `adit login TOKEN`，或粘贴到此页面。',
  ],
  ["this machine's clock", '本机时钟'],
  ['{0}, which is earlier than this version of adit', '{0}，早于本程序的构建时间'],
  [
    'Set the clock, preferably with NTP: adit needs it to check certificates.',
    '请校准时钟（最好使用 NTP）：证书的有效期以它为准。',
  ],
  ['HTTPS_PROXY and ALL_PROXY', 'HTTPS_PROXY 与 ALL_PROXY'],
  ['none is set', '均未设置'],
  ['{0} is not set to a valid address', '{0} 的值不是有效地址'],
  [
    'Set it to an address such as http://proxy.example:3128, or unset it.',
    '请设为类似 http://proxy.example:3128 的地址，或不要设置。',
  ],
  ['{0} is {1}; TLS goes through it, UDP does not', '{0} 为 {1}；TLS 经由它，UDP 不经由它'],
  ['{0} is {1}; NO_PROXY bypasses it for the relay', '{0} 为 {1}；NO_PROXY 使到中继的连接不经由它'],
  [
    'the proxy looks it up for TLS; this machine cannot: {0*}',
    'TLS 由代理解析；本机无法解析：{0*}',
  ],
  ['TLS goes through the proxy', 'TLS 经由代理'],
  ['the address of the relay', '中继的地址'],
  ['the address of {0}', '{0} 的地址'],
  ['TCP to the relay', '到中继的 TCP'],
  ['TCP to {0}', '到 {0} 的 TCP'],
  ['UDP to the relay', '到中继的 UDP'],
  ['UDP to {0}', '到 {0} 的 UDP'],
  ['no relay is known yet', '尚不知道中继'],
  ['there is no session to judge it by', '没有会话可供判断'],
  [
    "Check this machine's network and DNS server; if both work, ask the relay's operator for its name.",
    '请检查本机的网络与 DNS 服务器；若均正常，请向中继的运营者核对其域名。',
  ],
  ['{0*}, so adit uses the addresses it found before: {1*}', '{0*}，因此使用此前的地址：{1*}'],
  [
    "Check this machine's DNS server. The session does not need it until the relay moves.",
    '请检查本机的 DNS 服务器。在中继搬迁之前，会话不需要它。',
  ],
  ["the relay's address is not known", '中继的地址未知'],
  [
    'If UDP is blocked, adit needs TCP to this port: allow it through the firewall, and check that the relay is running.',
    'UDP 被拦截时要靠此端口的 TCP：请在防火墙放行，并确认中继正在运行。',
  ],
  ['the relay accepts connections', '中继接受连接'],
  ['the session runs over it', '会话正在使用它'],
  [
    'the session runs over TCP, which is slower on bad networks',
    '会话正在使用 TCP，在差的网络上较慢',
  ],
  [
    'Allow UDP to this port through the firewall; the session then switches to UDP automatically.',
    '请在防火墙放行到此端口的 UDP；会话随后会自动切换。',
  ],
  ['the session with the relay', '与中继的会话'],
  ['connected over {0}, round trip {1} ms', '已通过 {0} 连接，往返 {1} 毫秒'],
  ['Run `adit resume`.', '请运行 `adit resume`，或在托盘菜单中选择“恢复”。'],
  [
    "Ask the relay's operator for a new token and run `adit login TOKEN`.",
    '向中继的运营者索取新令牌，然后运行 `adit login TOKEN`。',
  ],
  [
    'adit retries automatically; the checks above show what is wrong.',
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
  ['{0}, the local service of {1} of the tunnel {2}', '{0}，隧道 {2} 的路径 {1} 的本地服务'],
  ['{0}, the local service of the tunnel {1}', '{0}，隧道 {1} 的本地服务'],
  ['the tunnel failed: {0}', '隧道出错：{0}'],
  ['Change the tunnel to fix this error, or delete it.', '请按原因修改隧道，或将其删除。'],
  ['a UDP service does not show whether it is running', 'UDP 服务不会表明自己是否存在'],
  [
    'Start the service on {0}, or change where {1} leads; its visitors are turned away until then.',
    '启动 {0} 上的服务，或更改 {1} 通往的服务；在此之前访问此路径的访客会被拒绝。',
  ],
  [
    'Something listens at {0}: use localhost instead of 127.0.0.1, which also finds it there.',
    '有服务在 {0} 监听：请用 localhost 代替 127.0.0.1，这样也能找到它。',
  ],
  [
    "Start the service on {0}, or change the tunnel's local address; visitors are turned away until then.",
    '请启动 {0} 上的服务，或修改隧道的本地地址；在此之前访客无法得到服务。',
  ],
  ['it accepts connections', '接受连接'],
  [
    'Nothing listens there: check whether the relay is running; if it has moved, ask its operator for a new token.',
    '该处没有服务在监听：请确认中继正在运行；若它已迁移，请向其运营者索取新的令牌。',
  ],
  ['write into {0}', '写入 {0}'],
  ['it can be written', '可以写入'],
  [
    'Let the account that runs adit write there, or free some space.',
    '请给运行 adit 的账户授予写入权限，或腾出空间。',
  ],
  ['Look at the file that was kept in {0}.', '请查看保留在 {0} 中的文件。'],
  ['reach {0} over {1}', '以 {1} 到达 {0}'],
  ['reached in {0}, at port {1} alone', '用时 {0} 到达，但只能经由端口 {1}'],
  ['reached in {0}', '用时 {0} 到达'],
  [
    'Check whether the relay is running, and whether a firewall blocks it.',
    '请确认中继正在运行，以及是否有防火墙阻挡。',
  ],
  [
    "Ask the relay's operator for a new token, and do not use this network for secrets until you know who answered.",
    '请向中继的运营者索取新的令牌；在弄清是谁在响应之前，不要在此网络上传输机密。',
  ],
  [
    "The network blocks UDP to the relay's port; adit then uses TLS, which is slower on lossy networks.",
    '网络不允许 UDP 到达中继的端口；adit 会改用 TLS，在丢包的网络上较慢。',
  ],
  [
    'TLS does not reach the relay either: check whether it is running, and whether this machine has a network.',
    'TLS 也无法到达中继：请确认它正在运行，以及本机是否联网。',
  ],
  ['ask the relay for an answer', '请求中继响应'],
  ['answered in {0}', '用时 {0} 响应'],
  [
    'Run `adit reconnect`; if that does not help, check whether the relay is running.',
    '请运行 `adit reconnect`；若无效，请确认中继正在运行。',
  ],
  // Why there is no session, why a tunnel failed, and what was refused. After
  // a * what varies may be a sentence of these, too.
  ['there is no tunnel with this id', '没有这个隧道'],
  ['there is no tunnel {0}', '没有隧道 {0}'],
  ['the body is nested deeper than {0} levels', '请求体的嵌套超过 {0} 层'],
  ['the body is not JSON: {0}, at byte {1}', '请求体不是 JSON：{0}，位于第 {1} 字节'],
  [
    'there is no request with this id; newer ones may have replaced it',
    '没有这个请求，它可能已让位于更新的请求',
  ],
  ['there is no such path in this API', '此 API 没有这个路径'],
  ['there is no such page here', '这里没有这个页面'],
  [
    'adit.toml sets who may visit this tunnel; change it there',
    '谁可以访问此隧道由 adit.toml 决定，请在文件中修改',
  ],
  [
    'this tunnel is declared in adit.toml; change it there',
    '此隧道在 adit.toml 中声明，请在文件中修改',
  ],
  ['another change is being made; try again in a moment', '另一项更改正在进行，请稍后再试'],
  ['there is no auth token yet; configure one first', '尚无认证令牌，请先配置'],
  ['the relay cannot do it now: {0*}', '中继目前无法完成：{0*}'],
  [
    '{0*} refuses the token for now: {1*}; ask its operator',
    '{0*}暂不接受令牌：{1*}；请联系其运营者',
  ],
  [
    '{0*} refused the token: {1*}; ask its operator for a new one',
    '{0*}拒绝了令牌：{1*}；请向其运营者索取新的令牌',
  ],
  ['{0*} refused: {1*}', '{0*}拒绝了请求：{1*}'],
  [
    "{0*} is not the one that the token names; if it was set up again, ask its operator for a new token; if not, check what answers in its place: a proxy that opens TLS, or this network's login page",
    '{0*}不是令牌所指的中继；若它已重新部署，请向其运营者索取新的令牌；若没有，请查看是什么在代替它应答：拆解 TLS 的代理，或此网络的登录页面',
  ],
  [
    "something else answers in place of {0*}: another program at its port, a proxy that opens TLS, or this network's login page",
    '代替{0*}应答的是别的东西：占用其端口的另一个程序、拆解 TLS 的代理，或此网络的登录页面',
  ],
  [
    "Check whether a browser shows a login page on this network, and ask the relay's operator whether its port is right.",
    '请查看浏览器在此网络中是否会出现登录页面，并向中继的运营者确认端口是否正确。',
  ],
  [
    '{0} is not an address such as http://proxy.example:3128; correct it and restart adit',
    '{0} 的值不是类似 http://proxy.example:3128 的地址；请更正后重启 adit',
  ],
  [
    'the proxy {0} of HTTPS_PROXY or ALL_PROXY does not lead to {1*}: {2*}',
    'HTTPS_PROXY 或 ALL_PROXY 所设的代理 {0} 未能通往{1*}：{2*}',
  ],
  ['the name {0} does not resolve', '名称 {0} 无法解析'],
  ['nothing answers there', '那里没有响应'],
  ['it did not answer in time', '它未及时响应'],
  ['it answered {0*}', '它的回答是 {0*}'],
  [
    "the relay's name {0} does not resolve; check the network and its DNS",
    '中继的域名 {0} 无法解析，请检查网络和 DNS',
  ],
  ['{0*} ended the session: {1*}', '{0*}结束了会话：{1*}'],
  ['{0*} has gone silent; trying again', '{0*}没有响应，正在重试'],
  [
    '{0*} was restarted, or could not reach this machine for a while; trying again',
    '{0*}已重新启动，或暂时无法连到这台电脑，正在重试',
  ],
  [
    'nothing answers for {0*}; it may be down, or the port may be wrong',
    '{0*}没有响应，它可能已停止，或端口不对',
  ],
  ['there is no way to {0*}; check the network', '无法到达{0*}，请检查网络'],
  [
    '{0*} did not answer in time; it may be down, or a firewall may block its port for UDP and TCP',
    '{0*}未及时响应，它可能已停止，或防火墙拦截了其端口的 UDP 与 TCP',
  ],
  ['no session with {0*}: {1*}', '与{0*}没有会话：{1*}'],
  ['the relay at {0}', '位于 {0} 的中继'],
  ['the relay', '中继'],
  ['this tunnel is not running', '此隧道未在运行'],
  ['the relay refused the token; configure another', '中继拒绝了令牌，请配置其他令牌'],
  ['the relay does not answer; try again in a moment', '中继没有响应，请稍后再试'],
  ['the relay did not answer in time', '中继未及时响应'],
  ['the relay answered with status {0}', '中继返回了状态码 {0}'],
  [
    'there is no session with the relay now; try again when it is connected',
    '目前与中继没有会话，请在连接后重试',
  ],
  ['the address that it gives the tunnel is too long', '它给隧道的内容比地址可能的长度还长'],
  ['the address that it gives the tunnel is not a public URL', '它给隧道的不是公网地址'],
  [
    'the relay is too old to show its policies; ask its operator to update it',
    '中继版本过旧，无法告知访问策略，请联系其运营者更新',
  ],
  ['the token belongs to the client {0}, not to {1}', '令牌属于客户端 {0}，而不是 {1}'],
  ['the same node answers at the address of another', '另一节点的地址上响应的是同一节点'],
  [
    'local_ip: {0} is an address at which clouds give out credentials; adit does not publish it',
    '{0} 是云平台发放凭据的地址，adit 不会发布它',
  ],
  [
    'local_ip: {0} is a name at which clouds give out credentials; adit does not publish it',
    '{0} 是云平台发放凭据的名称，adit 不会发布它',
  ],
  ['local_ip: {0} is not the address of one service', '{0} 不是单个服务的地址'],
  ['local_ip: {0} is neither an IP address nor a host name', '{0} 既不是 IP 地址，也不是主机名'],
  ['local_ip: {0} is {1}: {2*}', '{0} 即 {1}：{2*}'],
  ['local_ip: {0*}', '{0*}'],
  [
    '{0} is an address at which clouds give out credentials; adit does not publish it',
    '{0} 是云平台发放凭据的地址，adit 不会发布它',
  ],
  ['{0} is not the address of one service', '{0} 不是单个服务的地址'],
  [
    "adit's own page and API listen there; publishing them would hand this machine's tunnels to strangers",
    'adit 自己的页面和 API 在此监听，发布它们等于把本机的隧道交给陌生人',
  ],
  [
    'the relay of this adit listens there; a tunnel leads to a service of your own',
    '此 adit 自带的中继在此监听，隧道应指向自己的服务',
  ],
  ['the name {0} does not resolve: {1*}', '名称 {0} 无法解析：{1*}'],
  ['type: {0} is not known; it must be one of {1}', '未知的类型 {0}，须为以下之一：{1}'],
  ['mode: {0} is not known; it must be one of {1}', '未知的模式 {0}，须为以下之一：{1}'],
  // Private tunnels, and visits of them.
  ['visitors: are for tunnels of mode private only', '访客仅用于私有模式的隧道'],
  [
    'type: must be tcp or udp for mode private; tcp carries http as well',
    '私有模式的类型须为 tcp 或 udp，tcp 同样可以承载 http',
  ],
  [
    'remote_port: is not for mode private, which has no public port',
    '私有模式没有公网端口，不能填写 remote_port',
  ],
  [
    'domain: {0} must be one label in mode private, such as ssh',
    '私有模式的名称 {0} 须为单个标签，例如 ssh',
  ],
  ['visitors: {0*}', '访客：{0*}'],
  [
    'the relay is too old for private tunnels; choose another mode, or ask its operator to update it',
    '中继的版本不支持私有隧道，请选择其他模式，或联系其运营者更新中继',
  ],
  [
    'the relay is too old to list the private tunnels that you may visit; ask its operator to update it',
    '中继的版本不提供可访问的私有隧道列表；请联系其运营者更新',
  ],
  [
    'the relay is too old for private tunnels; ask its operator to update it',
    '中继的版本不支持私有隧道，请联系其运营者更新中继',
  ],
  [
    '{0} closed the connection before it sent anything; ask its owner whether its local service is running',
    '{0} 尚未发送任何内容就断开了连接；请向其所有者确认本地服务是否在运行',
  ],
  [
    'the relay is too old for private tunnels of any type but tcp; choose tcp, or ask its operator to update it',
    '中继的版本只支持 tcp 类型的私有隧道，请选择该类型，或联系其运营者更新中继',
  ],
  [
    'the relay is too old for private tunnels of any type but tcp; ask its operator to update it',
    '中继的版本只支持 tcp 类型的私有隧道，请联系其运营者更新中继',
  ],
  [
    "the relay ended the visit of {0} immediately; ask its owner or the relay's operator whether its policy lets you in now",
    '中继立即结束了对 {0} 的访问；请向其所有者或中继的运营者确认，其策略现在是否允许您访问',
  ],
  [
    '{0} is of type udp; declare the visit with type = "udp", and visit it without --stdio',
    '{0} 的类型为 udp；请在声明该访问时写明 type = "udp"，访问时不要使用 --stdio',
  ],
  [
    '{0} is of type tcp; declare the visit with type = "tcp"',
    '{0} 的类型为 tcp；请在声明该访问时写明 type = "tcp"',
  ],
  ['type: must be tcp or udp, the same type as the tunnel', '须为 tcp 或 udp，与隧道的类型一致'],
  ['adit is paused; resume it first', 'adit 已暂停，请先恢复'],
  ['tunnel: {0*}', '{0*}'],
  [
    'listen: must be a port, or an address of this machine with a port, such as 127.0.0.1:2222',
    '须为端口，或本机的地址加端口，例如 127.0.0.1:2222',
  ],
  [
    'listen: must be a loopback address, which other machines cannot reach, such as 127.0.0.1:2222',
    '须为其他机器无法连接的回环地址，例如 127.0.0.1:2222',
  ],
  ['listen: another visit already listens on {0}', '已有另一项访问在 {0} 监听'],
  ['there must be at most {0} visits', '最多 {0} 项访问'],
  ['cannot listen: {0*}; adit retries automatically', '无法监听：{0*}；会自动重试'],
  ['bind: address already in use', '地址已被其他程序占用'],
  ['bind: permission denied', '没有权限'],
  ["bind: can't assign requested address", '本机没有该地址'],
  ['bind: cannot assign requested address', '本机没有该地址'],
  [
    'bind: Only one usage of each socket address (protocol/network address/port) is normally permitted.',
    '地址已被其他程序占用',
  ],
  [
    'send the request with the headers Connection: Upgrade and Upgrade: {0}',
    '请求须带有标头 Connection: Upgrade 和 Upgrade: {0}',
  ],
  ['bytes came before the answer', '在应答之前收到了数据'],
  ["take a visit's connection: {0*}", '接管访问的连接：{0*}'],
  ['local_port: must be 1 to 65535', '本地端口须为 1 到 65535'],
  ['local_port is required, 1 to 65535', '请填写本地端口，1 到 65535'],
  [
    'held: is for ephemeral tunnels only; other tunnels stay when the program that created them ends',
    'held 仅用于临时隧道；其他隧道不随创建者消失',
  ],
  [
    'held: the tunnel {0} was not created with it, so it stays even if nothing holds it',
    '隧道 {0} 创建时未设置 held，无需保持即可存在',
  ],
  ['local_scheme: is for http and https tunnels only', '服务协议仅用于 http 和 https 隧道'],
  ['local_scheme: must be one of {0}', '服务协议须为以下之一：{0}'],
  [
    'domain: is not for tcp and udp tunnels; they have a remote_port',
    'tcp 和 udp 隧道没有域名，它们使用公网端口',
  ],
  ['domain: must have at most {0} characters', '域名最多 {0} 个字符'],
  [
    'domain: {0} is not a domain name, such as shop or shop.example.com; for all names below one, write *.shop or *.shop.example.com',
    '{0} 不是域名，例如 shop 或 shop.example.com；若要使用某名称下的所有名称，请写 *.shop 或 *.shop.example.com',
  ],
  ['domain: {0} is an address, not a domain name', '{0} 是地址，不是域名'],
  ['remote_port: is for tcp and udp tunnels only', '公网端口仅用于 tcp 和 udp 隧道'],
  [
    'remote_port: must be 1 to 65535, or 0 to let the relay choose',
    '公网端口须为 1 到 65535，或填 0 由中继分配',
  ],
  [
    'remote_port must be 1 to 65535, or 0 to let the relay choose',
    '公网端口须为 1 到 65535，或填 0 由中继分配',
  ],
  ['host_header: is for http and https tunnels only', 'Host 请求头仅用于 http 和 https 隧道'],
  ['host_header: must be a host name, with or without a port', 'Host 请求头须为主机名，可带端口'],
  ['request_headers: is for http and https tunnels only', '请求头仅用于 http 和 https 隧道'],
  ['response_headers: is for http and https tunnels only', '响应头仅用于 http 和 https 隧道'],
  ['paths: is for http and https tunnels only', '路径仅用于 http 和 https 隧道'],
  ['paths: local_port of {0} must be 1 to 65535', '路径 {0} 的本地端口须为 1 到 65535'],
  ['paths: local_scheme of {0} must be one of {1}', '路径 {0} 的本地协议须为 {1} 之一'],
  [
    'paths: host_header of {0} must be a host name, with or without a port',
    '路径 {0} 的 Host 请求头须为主机名，可带端口',
  ],
  ['paths: local_ip of {0}: {1*}', '路径 {0} 的本地地址：{1*}'],
  ['there must be at most {0} paths', '最多 {0} 条路径'],
  ['a path must have at most {0} bytes', '每条路径最多 {0} 字节'],
  ['the path {0} is given twice', '路径 {0} 重复出现'],
  ['the path {0} is not UTF-8', '路径 {0} 不是 UTF-8'],
  ['the path {0} has control characters', '路径 {0} 包含控制字符'],
  ['the path {0} must begin with /', '路径 {0} 须以 / 开头'],
  [
    "/ cannot be a path; requests that match no path go to the tunnel's own local service",
    '/ 不能作为路径：没有匹配路径的请求由隧道自己的本地服务处理',
  ],
  [
    'the path {0} must not end with /; without it, everything below is included as well',
    '路径 {0} 不能以 / 结尾；不带 / 时也包括其下的所有内容',
  ],
  ['the path {0} must be without a query', '路径 {0} 不能带查询参数'],
  [
    'the path {0} must be written decoded, without {1}',
    '路径 {0} 须以解码后的形式填写，不能包含 {1}',
  ],
  [
    'the path {0} must have no segment that is empty or made of dots',
    '路径 {0} 不能包含空的段，或由点组成的段',
  ],
  ['the tunnel has no path {0} any more', '隧道已没有路径 {0}'],
  [
    'the relay is too old to send paths to their own services; publish it without paths, or ask its operator to update it',
    '中继的版本不能让路径通往各自的服务，请不要填写路径，或联系其运营者更新中继',
  ],
  [
    'the relay is too old for policies declared in adit.toml; set the policy in another way, or ask its operator to update it',
    '中继的版本不能执行在文件中声明的访问策略，请以其他方式设置策略，或联系其运营者更新中继',
  ],
  [
    'the relay is too old to restrict who visits a tunnel from the start; publish it without a password or other policy, or ask its operator to update it',
    '中继的版本不能让隧道从一开始就对陌生人关闭，请不设密码或其他访问策略再发布，或联系其运营者更新中继',
  ],
  [
    'the relay is too old to give a tunnel all names below a domain; choose a single name, or ask its operator to update it',
    '中继的版本不能让一条隧道使用某名称下的所有名称，请选择单个名称，或联系其运营者更新中继',
  ],
  ['request_headers: {0*}', '请求头：{0*}'],
  ['response_headers: {0*}', '响应头：{0*}'],
  ['there must be at most {0} fields', '最多 {0} 个字段'],
  ['names and values must have at most {0} bytes together', '名称和值合计最多 {0} 字节'],
  ['{0} is not the name of a header field', '{0} 不是标头字段的名称'],
  ['{0} is given twice', '{0} 重复出现'],
  ['{0} is not changed here; use host_header', '{0} 不在此更改，请使用 host_header'],
  [
    '{0} cannot be changed: it belongs to the connection, or the relay sets it',
    '不能更改 {0}：它属于连接本身，或由中继负责',
  ],
  ['the value of {0} has control characters', '{0} 的值包含控制字符'],
  ['the value of {0} begins or ends with white space', '{0} 的值首尾有空白'],
  [
    'the relay is too old to change headers; publish the tunnel without header changes, or ask its operator to update it',
    '中继的版本不能更改标头，请不要填写 request_headers 和 response_headers，或联系其运营者更新中继',
  ],
  ['proxy_protocol: must be v1 or v2, or empty for none', 'PROXY 协议须为 v1 或 v2，留空表示关闭'],
  ['proxy_protocol: is not for udp tunnels', 'udp 隧道没有 PROXY 协议'],
  ['name: is missing', '缺少名称'],
  ['name: another tunnel is called {0} already', '已有名为 {0} 的隧道'],
  ['name: a tunnel that is not declared is called {0} already', '已有未在文件中声明的隧道名为 {0}'],
  ['name: must have at most {0} characters', '名称最多 {0} 个字符'],
  ['name: must not begin or end with white space', '名称的首尾不能是空白'],
  ['name: must have printable characters only', '名称只能包含可见字符'],
  ['client_id: must have at most {0} bytes', '客户端 ID最多 {0} 字节'],
  ['client_id: must have printable ASCII characters only', '客户端 ID只能包含可见的 ASCII 字符'],
  ['client_id must have at most 128 characters', '客户端 ID最多 128 个字符'],
  ['auth_token is required', '请填写认证令牌'],
  ['the tunnel that this request came through is not there any more', '此请求经过的隧道已不存在'],
  [
    'a request of an archive is sent to a tunnel that carries HTTP, and there is none',
    '归档文件中的请求会发往承载 HTTP 的隧道，而现在没有这样的隧道',
  ],
  [
    'a request of an archive is sent to the tunnel of its Host, and {0} of the {1} tunnels that carry HTTP are at {2}; give it the Host of one',
    '归档文件中的请求会发往其 Host 对应的隧道，而 {1} 条承载 HTTP 的隧道中有 {0} 条位于 {2}；请改用其中一条隧道的 Host',
  ],
  ['the tunnel carries no HTTP any more', '此隧道不再承载 HTTP'],
  ['the inspector did not keep the repeated request', '重放的请求未被保留'],
  [
    'the local service at {0} does not answer by HTTP/2: {1}',
    '位于 {0} 的本地服务未以 HTTP/2 应答：{1}',
  ],
  [
    'the configured token cannot be used: {0*}; configure a new one',
    '配置的令牌无法使用：{0*}；请重新配置',
  ],
  ['not an auth token: {0*}', '不是认证令牌：{0*}'],
  ['it is too long', '内容过长'],
  ['it must begin with {0}', '须以 {0} 开头'],
  ['it has characters that a token cannot have', '包含不应出现的字符'],
  ['a part of it is missing', '缺少一部分'],
  ['a part of it is missing or mistyped', '缺少一部分或有误'],
  ['its version {0} is not known here; update adit', '其版本 {0} 未知，请更新 adit'],
  ["the relay's address in it is not host:port", '其中的中继地址不是 主机:端口 的形式'],
  ["the relay's port in it is not 1 to 65535", '其中的中继端口不在 1 到 65535 之间'],
  ['the body is empty; send a JSON object', '请求体为空，应为 JSON 对象'],
  ['the body is empty; send an HTTP Archive', '请求体为空，应为 HTTP Archive'],
  ['the body is incomplete', '请求体不完整'],
  ['the body is not UTF-8', '请求体不是 UTF-8'],
  [
    'the body begins with a byte order mark; remove it',
    '请求体以字节顺序标记（BOM）开头；请去掉后再发送',
  ],
  ['the body has half of a character: {0}', '请求体中有不完整的字符：{0}'],
  ['{0} is for policies only; leave it out here', '{0} 仅用于策略；请在此处省略'],
  ['the body is not JSON', '请求体不是 JSON'],
  ['the body must be a JSON object', '请求体须为 JSON 对象'],
  [
    'the body must be a JSON object, as an HTTP Archive is',
    '请求体须为 JSON 对象，HTTP Archive 即是如此',
  ],
  [
    'the body must be a JSON object; {} lets everybody in',
    '请求体须为 JSON 对象；{} 表示允许所有访客',
  ],
  ['the body does not fit: {0}', '请求体不符合要求：{0}'],
  ['the body is over 1 MiB', '请求体超过 1 MiB'],
  [
    'send the body as application/json, in UTF-8 and not compressed',
    '请求体须为未压缩的 UTF-8 application/json',
  ],
  ['{0} event streams are open; close one first', '已打开 {0} 个事件流，请先关闭一个'],
  ['{0} tunnels are held; release one first', '已有 {0} 个隧道被占用保持，请先释放一个'],
  [
    "it ended as soon as it began: the service behind the tunnel may be down; its owner can check adit's log",
    '刚建立就已结束：隧道背后的服务可能没有运行，其所有者可在 adit 的日志中查明',
  ],
  ['{0} visits are open; close one first', '已打开 {0} 个访问，请先关闭一个'],
  [
    '{0} may not use this API; [local_api] allowed_origins lists those that may',
    '{0} 不能使用此 API；[local_api] allowed_origins 列出了允许的来源',
  ],
  [
    'this listener does not answer to the name {0}; [local_api] allowed_hosts adds names',
    '此监听不响应名称 {0}；可在 [local_api] allowed_hosts 中添加',
  ],
  ['this listener answers to this machine only', '此监听只响应本机'],
  ['the query string is malformed', '查询字符串格式有误'],
  ['give body or body_base64, not both', 'body 与 body_base64 只能给出一个'],
  ['this path takes {0}', '此路径接受 {0}'],
  ['the daemon could not do it; its log says why', '守护进程未能完成，原因见其日志'],
  [
    'the daemon could not save it: {0}; fix that in its state folder and try again',
    '守护进程未能保存：{0}；请在其状态目录处排除后重试',
  ],
];

/** Returns what the daemon said in a language; what is not known stays as it is. */
export const translated = interpreter([...chinese, ...originSentences, ...relaySentences]);

/** Returns what the daemon said in the reader's language, for a place within a sentence. */
export const clause = (text: string): string => visible(translated(text, prefs.lang));

/** Returns what the daemon said in the reader's language, as a sentence. */
export const said = (text: string): string => sentence(clause(text));

/** Returns why the service of an endpoint is not reached; that of a path begins with it. */
export function saidOfService(text: string): string {
  const [, path = '', why = text] = /^(\/\S*): (.*)$/s.exec(text) ?? [];
  return path ? `${visible(path)}: ${clause(why)}` : said(why);
}

const ofFile = interpreter(configSentences);

/** Returns what is wrong with adit.toml in a language. */
export function mistakeIn({ message, key }: NonNullable<Config['error']>, lang: Lang): string {
  const known = ofFile(message, lang);
  if (known !== message || lang === 'en') return known;
  // What the agent refuses it says with the field, which the daemon takes for the key.
  const whole = `${key?.split('.').at(-1) ?? ''}: ${message}`;
  const got = translated(whole, lang);
  return got === whole ? translated(message, lang) : got;
}

/** Returns what is wrong with adit.toml in the reader's language. */
export const mistake = (error: NonNullable<Config['error']>): string =>
  visible(mistakeIn(error, prefs.lang));
