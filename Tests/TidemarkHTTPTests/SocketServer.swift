import Foundation
import TidemarkEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

/// Sends what the socket takes, without a signal where nobody reads any more. Darwin has no flag
/// for that.
private func sendBytes(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  #if canImport(Darwin)
    let flags: Int32 = 0
  #else
    let flags = Int32(MSG_NOSIGNAL)
  #endif
  return send(socket, bytes.baseAddress, bytes.count, flags)
}

/// A server on the loopback interface that answers with whatever bytes a test wants, right ones or
/// not: one thread a connection.
final class SocketServer: Sendable {
  struct Request: Sendable {
    var method = ""
    var path = ""
    /// By names in lower case.
    var headers: [String: String] = [:]
    var body: [UInt8] = []
  }

  private struct State {
    var connections: Set<Int32> = []
    var isStopped = false
    var requests: [Request] = []
  }

  let port: UInt16
  private let listener: Int32
  private let state = Lock(State())

  /// - Parameters:
  ///   - wanted: the port; 0 for any that is free.
  ///   - serve: answers a request on its connection; false ends the connection.
  init(
    port wanted: UInt16 = 0, _ serve: @escaping @Sendable (Request, Connection) -> Bool
  ) throws {
    #if !canImport(Darwin) && canImport(Glibc)
      let kind = Int32(SOCK_STREAM.rawValue)
    #else
      let kind = SOCK_STREAM
    #endif
    let socket = socket(AF_INET, kind, 0)
    listener = socket
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    address.sin_port = wanted.bigEndian
    if wanted > 0 {
      // Connections of the server that was there before may still be dying.
      var isReused: Int32 = 1
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<Int32>.size))
    }
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, length) + listen(socket, 64) + getsockname(socket, $0, &length)
      }
    }
    guard socket >= 0, result == 0 else {
      close(socket)
      throw POSIXError(.EADDRINUSE)
    }
    port = UInt16(bigEndian: address.sin_port)
    let listening = listener
    Thread.detachNewThread { [state] in
      // The thread that accepts closes, too: a number that was closed may be another server's.
      defer { close(listening) }
      while true {
        var waiting = pollfd(fd: listening, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, 20) >= 0, !state.withLock({ $0.isStopped }) else { return }
        guard waiting.revents != 0 else { continue }
        let socket = accept(listening, nil, nil)
        guard socket >= 0 else { return }
        guard state.withLock({ $0.isStopped ? false : $0.connections.insert(socket).inserted })
        else {
          close(socket)
          return
        }
        Thread.detachNewThread {
          let connection = Connection(socket: socket)
          while let request = connection.readRequest() {
            state.withLock { $0.requests.append(request) }
            guard serve(request, connection) else { break }
          }
          _ = state.withLock { $0.connections.remove(socket) }
          close(socket)
        }
      }
    }
  }

  /// Everything that was asked for so far.
  var requests: [Request] { state.withLock { $0.requests } }

  var url: String { "http://127.0.0.1:\(port)" }

  func stop() {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.isStopped = true
      for socket in state.connections { shutdown(socket, Int32(SHUT_RDWR)) }
      shutdown(listener, Int32(SHUT_RDWR))
    }
  }

  deinit { stop() }
}

/// A connection of a ``SocketServer``.
final class Connection: @unchecked Sendable {
  private let socket: Int32
  /// The buffer of this connection's thread.
  private var buffer: [UInt8] = []

  init(socket: Int32) { self.socket = socket }

  private func fill() -> Bool {
    var piece = [UInt8](repeating: 0, count: 65_536)
    let count = recv(socket, &piece, piece.count, 0)
    guard count > 0 else { return false }
    buffer.append(contentsOf: piece.prefix(count))
    return true
  }

  /// - Returns: nil at the connection's end.
  func readRequest() -> SocketServer.Request? {
    let mark = Array("\r\n\r\n".utf8)
    var searched = 0
    while true {
      if buffer.count >= 4 {
        for start in max(0, searched - 3)...(buffer.count - 4)
        where buffer[start..<start + 4].elementsEqual(mark) {
          return finish(headEnd: start)
        }
        searched = buffer.count
      }
      guard fill() else { return nil }
    }
  }

  private func finish(headEnd: Int) -> SocketServer.Request? {
    let lines = String(decoding: buffer[..<headEnd], as: UTF8.self).components(
      separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.count == 3 else { return nil }
    var request = SocketServer.Request(method: String(words[0]), path: String(words[1]))
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      request.headers[line[..<colon].lowercased()] =
        line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    buffer.removeFirst(headEnd + 4)
    let length = Int(request.headers["content-length"] ?? "") ?? 0
    if request.headers["expect"] == "100-continue" { send("HTTP/1.1 100 Continue\r\n\r\n") }
    while buffer.count < length { guard fill() else { return nil } }
    request.body = Array(buffer.prefix(length))
    buffer.removeFirst(length)
    return request
  }

  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { sendBytes(socket, $0) }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  @discardableResult
  func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// Sends a whole answer; further headers may contradict it.
  @discardableResult
  func answer(
    _ status: Int, _ body: [UInt8] = [], type: String = "application/vnd.tidemark.sync",
    headers: [String] = []
  ) -> Bool {
    var head = "HTTP/1.1 \(status) Said\r\nContent-Type: \(type)\r\n"
    head += "Content-Length: \(body.count)\r\n"
    for header in headers { head += header + "\r\n" }
    return send(Array((head + "\r\n").utf8) + body)
  }
}
