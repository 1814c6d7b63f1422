import TidemarkEngine
import TidemarkHTTP
import TidemarkTestKit

/// An answer that a ``ScriptedOrigin`` gives; status 0 breaks off
/// in the middle of its head.
struct Said: Sendable {
  var status = 200
  var headers: [String: String] = [:]
  var body = ""
}

/// A server behind sockets that answers with what it was told, in that order.
final class ScriptedOrigin: Sendable {
  private struct State {
    var script: [Said] = []
    var received: [SocketServer.Request] = []
  }

  private let server: SocketServer
  private let state: Lock<State>

  init(_ clock: ManualClock) throws {
    let state = Lock(State())
    self.state = state
    server = try SocketServer { request, connection in
      let said = state.withLock { state in
        state.received.append(request)
        return state.script.isEmpty ? Said(status: 599) : state.script.removeFirst()
      }
      guard said.status > 0 else {
        // An answer that has begun is not asked for again on another connection.
        connection.send("HTTP/1.1 200 Said\r\nContent-Len")
        return false
      }
      return connection.send(Self.bytes(said, request, now: clock.now().milliseconds / 1000))
    }
  }

  private static func bytes(_ said: Said, _ request: SocketServer.Request, now: Int64) -> [UInt8] {
    var head = "HTTP/1.1 \(said.status) Said\r\n"
    if said.headers["Date"] == nil { head += "Date: \(text(now))\r\n" }
    for (name, value) in said.headers.sorted(by: { $0.key < $1.key }) where value != "-" {
      // `@5` is the date five seconds ahead.
      let offset = value.hasPrefix("@") ? Int64(value.dropFirst()) : nil
      head += "\(name): \(offset.map { text(now + $0) } ?? value)\r\n"
    }
    let hasBody = said.status != 304 && said.status != 204
    if hasBody, said.headers["Content-Length"] == nil {
      head += "Content-Length: \(said.body.utf8.count)\r\n"
    }
    let body = hasBody && request.method != "HEAD" ? Array(said.body.utf8) : []
    return Array((head + "\r\n").utf8) + body
  }

  /// A date as HTTP has it, by Howard Hinnant's `civil_from_days`.
  static func text(_ seconds: Int64) -> String {
    let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let months = [
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    let shifted = seconds / 86_400 + 719_468
    let era = shifted / 146_097
    let ofEra = shifted - era * 146_097
    let year = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
    let ofYear = ofEra - (365 * year + year / 4 - year / 100)
    let part = (5 * ofYear + 2) / 153
    let month = part < 10 ? part + 3 : part - 9
    func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let time = seconds % 86_400
    return "\(names[Int(seconds / 86_400 % 7)]), \(two(ofYear - (153 * part + 2) / 5 + 1)) "
      + "\(months[Int(month - 1)]) \(year + era * 400 + (month <= 2 ? 1 : 0)) "
      + "\(two(time / 3_600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
  }

  var url: String { server.url }
  func say(_ said: Said) { state.withLock { $0.script.append(said) } }
  var received: [SocketServer.Request] { state.withLock { $0.received } }
  var unsaid: Int { state.withLock { $0.script.count } }
  func stop() { server.stop() }
}
