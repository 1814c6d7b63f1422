internal import Foundation
internal import TidemarkEngine
internal import TidemarkSyncProtocol

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// Hands on what a session receives, task by task.
///
/// Every task is heard of once more only after it was ended here: what comes later is passed over.
final class SessionReception: NSObject, URLSessionDataDelegate {
  /// Where the parts of an answer go. A part that throws ends the task.
  struct Receiver: Sendable {
    var head: @Sendable (HTTPTransportAnswer) throws -> Void
    var body: @Sendable ([UInt8]) throws -> Void
  }

  private struct Row {
    var receiver: Receiver
    var continuation: CheckedContinuation<Void, any Error>
  }

  private let rows = Lock<[Int: Row]>([:])

  /// Waits for what comes to a task.
  func expect(
    _ id: Int, _ receiver: Receiver, _ continuation: CheckedContinuation<Void, any Error>
  ) {
    rows.withLock { $0[id] = Row(receiver: receiver, continuation: continuation) }
  }

  /// Lets whoever waits for a task go on, once.
  func end(_ id: Int, _ result: Result<Void, any Error>) {
    rows.withLock { $0.removeValue(forKey: id) }?.continuation.resume(with: result)
  }

  /// Lets everybody go on, since the session is closed.
  func endAll() {
    let left = rows.withLock { rows in
      defer { rows = [:] }
      return rows
    }
    for row in left.values { row.continuation.resume(throwing: Self.closed) }
  }

  static let closed = PeerError(.unavailable, "the connection was closed")

  private func hand(_ task: URLSessionTask, _ part: (Receiver) throws -> Void) -> Bool {
    guard let row = rows.withLock({ $0[task.taskIdentifier] }) else { return false }
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
      let head = try Self.head(response)
      // An interim answer is none.
      if head.status >= 200 { try receiver.head(head) }
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
    // The redirect itself is the answer, which not every platform hands on.
    _ = take(response, of: task)
    completionHandler(nil)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    guard let error else { return end(task.taskIdentifier, .success(())) }
    end(task.taskIdentifier, .failure(PeerError(.unavailable, error.localizedDescription)))
  }

  private static func head(_ response: URLResponse) throws(PeerError) -> HTTPTransportAnswer {
    guard let response = response as? HTTPURLResponse else {
      throw PeerError(.unavailable, "the server does not speak HTTP")
    }
    var answer = HTTPTransportAnswer(status: response.statusCode)
    for (name, value) in response.allHeaderFields {
      guard let name = name as? String, let value = value as? String else { continue }
      answer.headers[name.lowercased()] = value
    }
    return answer
  }
}
