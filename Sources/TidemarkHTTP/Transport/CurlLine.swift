#if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
  // SAFETY: memory that is passed to C lives until the call returns: `perform` retains the request
  // and the reception. A handle is used only on its line's thread, except by
  // `ctidemark_http_cancel`, which any thread may call, and is destroyed with the line.
  internal import CTidemarkHTTP
  internal import Foundation
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  /// A connection of libcurl, and the thread that blocks on it.
  @safe
  final class CurlLine: @unchecked Sendable {
    private let handle: OpaquePointer
    private let thread: JobThread

    init() throws {
      thread = try JobThread(name: "tidemark-http")
      guard let handle = unsafe ctidemark_http_create() else {
        throw PeerError(.unavailable, "there is no memory for a connection")
      }
      unsafe self.handle = handle
    }

    deinit { unsafe ctidemark_http_destroy(handle) }

    /// Cancels the running exchange, from any thread. The line cannot be used again.
    func cancel() { unsafe ctidemark_http_cancel(handle) }

    /// Sends a request, passes the response to `reception` and calls `end`, on the line's thread.
    func perform(
      _ message: CurlMessage, _ reception: CurlReception,
      _ end: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
      thread.add { [self] in end(Result { try performHere(message, reception) }) }
    }

    private func performHere(_ message: CurlMessage, _ reception: CurlReception) throws {
      var error = [CChar](repeating: 0, count: 512)
      var receiver = unsafe ctidemark_http_receiver(
        context: Unmanaged.passUnretained(reception).toOpaque(),
        line: { context, bytes, count in
          unsafe CurlLine.reception(context).take(line: CurlLine.bytes(bytes, count)) ? 1 : 0
        },
        body: { context, bytes, count in
          unsafe CurlLine.reception(context).take(body: CurlLine.bytes(bytes, count)) ? 1 : 0
        })
      let outcome = unsafe message.body.withUnsafeBufferPointer { body in
        unsafe message.headers.withUnsafeBufferPointer { headers in
          var request = unsafe ctidemark_http_request()
          unsafe request.body = body.baseAddress
          unsafe request.body_bytes = body.count
          unsafe request.headers = headers.baseAddress
          return unsafe message.method.withCString { method in
            unsafe message.url.withCString { url in
              unsafe request.method = method
              unsafe request.url = url
              return unsafe ctidemark_http_perform(
                handle, &request, &receiver, &error, error.count)
            }
          }
        }
      }
      try withExtendedLifetime(reception) {
        switch Int(outcome) {
        case Int(ctidemark_http_done):
          // Without TLS a cut connection cannot be told from an ended one, so it counts as ended.
          let isEnd = unsafe !message.isSecure || ctidemark_http_heard_close(handle)
          try reception.finish(isEndTold: isEnd)
        case Int(ctidemark_http_ended): throw reception.error ?? HTTPTransportAnswer.closed
        case Int(ctidemark_http_cancelled): throw HTTPTransportAnswer.closed
        default:
          let end = error.firstIndex(of: 0) ?? error.count
          let text = error[..<end].map { UInt8(bitPattern: $0) }
          throw PeerError(.unavailable, String(decoding: text, as: UTF8.self))
        }
      }
    }

    private static func reception(_ context: UnsafeMutableRawPointer?) -> CurlReception {
      // Passed by `performHere`, and never nil.
      unsafe Unmanaged<CurlReception>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    private static func bytes(_ start: UnsafePointer<UInt8>?, _ count: Int) -> [UInt8] {
      unsafe Array(UnsafeBufferPointer(start: start, count: count))
    }
  }
#endif
