internal import Foundation
internal import TidemarkEngine
internal import TidemarkSyncProtocol

#if !canImport(Darwin)
  internal import FoundationNetworking
#endif

/// The delegate of a session: passes the responses of its tasks on to their receivers.
///
/// The caller that waits for a task is resumed once; later events of the task are ignored. Tasks
/// are cancelled only in the session's queue, and only before they complete: on Linux the process
/// traps when a task is cancelled on another thread while it completes.
final class SessionReception: NSObject, URLSessionDataDelegate {
  /// Gets the parts of a response. If a closure throws, the task is cancelled.
  struct Receiver: Sendable {
    var head: @Sendable (HTTPTransportAnswer) throws -> Void
    var body: @Sendable ([UInt8]) throws -> Void
  }

  /// A task that has not completed.
  private struct Row {
    let task: URLSessionTask
    let receiver: Receiver
    /// Nil once the caller was resumed.
    var continuation: CheckedContinuation<Void, any Error>?
  }

  private let rows = Lock<[Int: Row]>([:])

  /// Registers a task and its waiting caller, before the task is resumed or cancelled.
  func expect(
    _ task: URLSessionTask, _ receiver: Receiver,
    _ continuation: CheckedContinuation<Void, any Error>
  ) {
    let row = Row(task: task, receiver: receiver, continuation: continuation)
    rows.withLock { $0[task.taskIdentifier] = row }
  }

  /// Resumes the caller of a task with an error, and cancels the task.
  func cancel(_ task: URLSessionTask, in session: URLSession, _ reason: any Error) {
    let id = task.taskIdentifier
    end(id, .failure(reason))
    session.delegateQueue.addOperation {
      // A caller that is cancelled early may register only after the first `end`. This one finds
      // task and caller in one step, so that the caller gets the reason, not the session's error.
      self.end(id, .failure(reason))?.cancel()
    }
  }

  /// Ends a session: running tasks fail.
  func close(_ session: URLSession) {
    for id in rows.withLock({ Array($0.keys) }) { end(id, .failure(HTTPTransportAnswer.closed)) }
    session.delegateQueue.addOperation {
      for row in self.rows.withLock({ $0 }).values { row.task.cancel() }
      session.finishTasksAndInvalidate()
    }
  }

  /// Resumes the caller of a task, if it still waits.
  /// - Returns: the task, unless it has completed.
  @discardableResult
  private func end(_ id: Int, _ result: Result<Void, any Error>) -> URLSessionTask? {
    let row = rows.withLock { rows in
      defer { rows[id]?.continuation = nil }
      return rows[id]
    }
    row?.continuation?.resume(with: result)
    return row?.task
  }

  /// Passes a part to a task's receiver, in the session's queue; false ends the task.
  private func hand(_ task: URLSessionTask, _ part: (Receiver) throws -> Void) -> Bool {
    guard let row = rows.withLock({ $0[task.taskIdentifier] }), row.continuation != nil else {
      return false
    }
    do {
      try part(row.receiver)
      return true
    } catch {
      end(task.taskIdentifier, .failure(error))
      task.cancel()
      return false
    }
  }

  private func take(_ response: URLResponse, of task: URLSessionTask) -> Bool {
    hand(task) { receiver in
      guard let response = response as? HTTPURLResponse else {
        throw PeerError(.unavailable, "the server does not speak HTTP")
      }
      // An interim response: the final one follows.
      guard response.statusCode >= 200 else { return }
      let head = try Self.head(response)
      #if !canImport(Darwin)
        let isHead = task.originalRequest?.httpMethod == "HEAD"
        guard Self.isFramed(response) || head.hasNoBody(isHead: isHead) else {
          throw HTTPTransportAnswer.untoldEnd
        }
      #endif
      try receiver.head(head)
    }
  }

  // MARK: URLSessionDataDelegate

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    completionHandler(take(response, of: dataTask) ? .allow : .cancel)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    _ = hand(dataTask) { try $0.body([UInt8](data)) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    // The redirect is the response: not every platform also delivers it as one.
    _ = take(response, of: task)
    completionHandler(nil)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    let row = rows.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    guard let error else { row?.continuation?.resume(); return }
    row?.continuation?.resume(throwing: PeerError(.unavailable, error.localizedDescription))
  }

  private static func head(_ response: HTTPURLResponse) throws(PeerError) -> HTTPTransportAnswer {
    var fields: [(name: String, value: String)] = []
    for (name, value) in response.allHeaderFields {
      guard let name = name as? String, let value = value as? String else { continue }
      let isCookie = name.lowercased() == "set-cookie"
      fields += (isCookie ? cookies(in: value) : [value]).map { (name, $0) }
    }
    var answer = try HTTPTransportAnswer(status: response.statusCode, fields: fields)
    let codings = HTTPHeaders.list(answer.headers["content-encoding"] ?? "").map { $0.lowercased() }
    if !codings.isEmpty, decoded.isSuperset(of: codings) {
      answer.headers["content-encoding"] = nil
      answer.headers["content-length"] = nil
    }
    return answer
  }

  #if !canImport(Darwin)
    /// Whether a body that is cut off would be noticed: over TLS, sessions on Linux take the end of
    /// a connection for the body's end where neither length nor chunks tell it.
    private static func isFramed(_ response: HTTPURLResponse) -> Bool {
      response.url?.scheme?.lowercased() != "https"
        || ["Content-Length", "Transfer-Encoding"].contains {
          response.value(forHTTPHeaderField: $0) != nil
        }
    }
  #endif

  /// Content codings that sessions decode by themselves.
  #if !canImport(Darwin)
    private static let decoded: Set = ["br", "deflate", "gzip", "x-gzip", "zstd"]
  #else
    private static let decoded: Set = ["br", "deflate", "gzip", "x-gzip"]
  #endif

  /// The values of `Set-Cookie`, which a session joins with commas: each begins with a name and
  /// `=`, which no part of a value after a comma does, such as of a date.
  static func cookies(in text: String) -> [String] {
    var cookies: [String] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let start = part.drop { $0 == " " }
      let isCookie = start.firstIndex(of: "=").map { HTTPHeaders.isToken(start[..<$0]) }
      if cookies.isEmpty || isCookie == true {
        cookies.append(String(start))
      } else {
        cookies[cookies.count - 1] += ",\(part)"
      }
    }
    return cookies
  }
}
