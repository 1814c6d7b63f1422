internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TidemarkSyncServer

/// The answer to a request.
struct Reply: Sendable {
  var status = HTTPResponse.Status.ok
  var contentType: String
  var headers = HTTPFields()
  /// The response body, in the buffer that is written to the socket: a copy would take as much
  /// memory again for as long as a slow reader does not read it.
  var body: ByteBuffer
  /// Bytes of the request's body, for metrics.
  var received = 0
  /// How many changes the request pushed, for metrics.
  var entries = 0
  /// The error that it reports, if any, for the log.
  var error: PeerError?

  init(_ body: [UInt8], _ coding: Coding) {
    self.body = ByteBuffer(bytes: body)
    contentType = coding.contentType
  }

  init(text: String, contentType: String, status: HTTPResponse.Status = .ok) {
    body = ByteBuffer(string: text)
    self.contentType = contentType
    self.status = status
  }

  /// An error, in the coding that the caller expects.
  init(_ problem: Problem, _ coding: Coding) {
    let message = WireMessage.error(problem.error)
    self.init((try? coding.encode(message, WireCoder())) ?? [], coding)
    status = problem.status
    headers = problem.headers
    error = problem.error
  }

  /// Sends the answer.
  /// - Parameter isHead: whether the request is a `HEAD`, so that only the head is sent.
  func send(_ writer: consuming ResponseWriter, isHead: Bool) async throws {
    var headers = headers
    headers[.contentType] = contentType
    headers[.contentLength] = String(body.readableBytes)
    headers[.cacheControl] = "no-store"
    headers[.xContentTypeOptions] = "nosniff"
    let head = HTTPResponse(status: status, headerFields: headers)
    try await writer.write(
      response: head,
      body: isHead ? ResponseBody() : ResponseBody(byteBuffer: body))
  }
}
