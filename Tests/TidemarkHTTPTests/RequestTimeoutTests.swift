import Foundation
import Testing
import Tidemark

@testable import TidemarkHTTPCache

#if !canImport(Darwin)
  import FoundationNetworking
#endif

@Suite("Timeouts of requests", .timeLimit(.minutes(20))) struct RequestTimeoutTests {
  @Test(
    "a request ends when nothing has come for its timeout, wherever the server has stopped",
    arguments: [
      "", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
      "HTTP/1.1 302 There\r\nLocation: /silent\r\nContent-Length: 0\r\n\r\n",
    ])
  func silence(beginning: String) async throws {
    let server = try SocketServer { request, connection in
      if request.path != "/silent" { connection.send(beginning) }
      return connection.readRequest() != nil
    }
    defer { server.stop() }
    try await withCache { cache in
      var request = URLRequest(url: try #require(URL(string: server.url + "/a")))
      request.timeoutInterval = 0.1
      let error = await #expect(throws: URLError.self) { try await cache.data(for: request) }
      #expect(error?.code == .timedOut)
      #expect(try cache.responses.count == 0)
    }
  }

  @Test(
    "timeouts that are none are as long as there are any", arguments: [-1, .infinity, .nan, 1e300])
  func odd(timeout: Double) async throws {
    let server = try SocketServer { _, connection in connection.answer(200, [1]) }
    defer { server.stop() }
    try await withCache { cache in
      var request = URLRequest(url: try #require(URL(string: server.url + "/a")))
      request.timeoutInterval = timeout
      #expect(try await cache.data(for: request).0 == Data([1]))
    }
  }
}
