import Foundation
import TidemarkSyncServer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

/// A sync handler behind just enough of HTTP/1.1 for one peer that is known to behave; the real
/// server is Tools/SyncServer.
final class LoopbackServer: Sendable {
  private let handler: SyncHandler
  private let listener: Int32
  let port: UInt16

  init(path: String) throws {
    handler = try SyncHandler(at: path)
    #if !canImport(Darwin) && canImport(Glibc)
      listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      listener = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) + listen(listener, 16) + getsockname(listener, $0, &length)
      }
    }
    guard listener >= 0, result == 0 else { throw BenchError("no port is free") }
    port = UInt16(bigEndian: address.sin_port)
  }

  /// Serves until the process ends, each connection by a thread.
  func run() {
    while true {
      let connection = accept(listener, nil, nil)
      guard connection >= 0 else { return }
      Thread.detachNewThread { [self] in
        serve(LoopbackConnection(connection))
        close(connection)
      }
    }
  }

  private func serve(_ connection: LoopbackConnection) {
    let coder = WireCoder(limit: WireFrame.largestLimit)
    while let body = connection.request() {
      let answer: WireMessage
      do {
        answer = try handler.answer(try coder.decode(body))
      } catch {
        answer = .error(error)
      }
      guard let bytes = try? coder.encode(answer) else { return }
      let isError = if case .error = answer { true } else { false }
      guard connection.answer(isError ? 500 : 200, bytes) else { return }
    }
  }
}

/// One connection; requests come one after the other.
final class LoopbackConnection {
  private let socket: Int32
  private var buffer: [UInt8] = []
  private var piece = [UInt8](repeating: 0, count: 1 << 18)

  init(_ socket: Int32) { self.socket = socket }

  private func fill() -> Bool {
    let count = recv(socket, &piece, piece.count, 0)
    guard count > 0 else { return false }
    buffer.append(contentsOf: piece[..<count])
    return true
  }

  /// The body of the next request; nil at the end.
  func request() -> [UInt8]? {
    let mark = Data("\r\n\r\n".utf8)
    while true {
      if let end = Data(buffer).range(of: mark) { return body(headEnd: end.lowerBound) }
      guard buffer.count < 1 << 16, fill() else { return nil }
    }
  }

  private func body(headEnd: Int) -> [UInt8]? {
    let head = String(decoding: buffer[..<headEnd], as: UTF8.self).lowercased()
    var length = 0
    for line in head.components(separatedBy: "\r\n") {
      if line.hasPrefix("content-length:") {
        length = Int(line.dropFirst(15).trimmingCharacters(in: .whitespaces)) ?? 0
      } else if line == "expect: 100-continue" {
        guard send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else { return nil }
      }
    }
    buffer.removeFirst(headEnd + 4)
    while buffer.count < length { guard fill() else { return nil } }
    let body = Array(buffer.prefix(length))
    buffer.removeFirst(length)
    return body
  }

  func answer(_ status: Int, _ body: [UInt8]) -> Bool {
    let head =
      "HTTP/1.1 \(status) Said\r\nContent-Type: \(WireFrame.contentType)\r\n"
      + "Content-Length: \(body.count)\r\n\r\n"
    return send(Array(head.utf8) + body)
  }

  private func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { write(socket, $0.baseAddress, $0.count) }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }
}
