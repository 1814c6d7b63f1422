import SyncServerKit
import Testing

@Suite("A server that cannot start", .timeLimit(.minutes(20)))
struct StartTests {
  private func failure(
    _ change: (inout ServerOptions) -> Void
  ) async throws -> SettingsError? {
    do {
      try await TestServer.run(change) { _ in Issue.record("it has started") }
      return nil
    } catch let error as SettingsError {
      #expect(!error.description.contains("\n"))
      return error
    }
  }

  @Test("says that the port is in use, and which one")
  func port() async throws {
    try await TestServer.run { other in
      let error = try #require(try await failure { $0.port = other.port })
      #expect(error.kind == .unavailable)
      #expect(
        error.description
          == "cannot listen at 127.0.0.1, port \(other.port): another program uses the port; "
          + "end that one, or choose another with --port")
      #expect(try await other.request("GET", "/health").status == 200)
    }
  }

  @Test("says that an address is not this machine's, or is none at all")
  func address() async throws {
    for (host, words) in [("192.0.2.1", "does not have the address"), ("no.invalid", "no such")] {
      let error = try await failure {
        $0.host = host
        $0.isOpen = true
      }
      #expect(error?.kind == .unavailable)
      #expect(
        error?.description.contains(words) == true && error?.description.contains(host) == true)
    }
  }

  @Test("says that the directory cannot be made, or is none")
  func directory() async throws {
    try await TestServer.inDirectory { directory in
      for path in [directory + "/none/data", "/dev/null"] {
        let error = try #require(try await failure { $0.dataDirectory = path })
        #expect(error.kind == .unusable)
        #expect(error.description.contains(path) && error.description.contains("--data"))
      }
    }
  }

  #if TLS
    @Test("says which certificate cannot be read")
    func certificate() async throws {
      let error = try await failure {
        $0.certificateFile = "/none/cert.pem"
        $0.keyFile = "/none/key.pem"
      }
      #expect(error?.kind == .unreadable)
      #expect(error?.description.hasPrefix("cannot read /none/cert.pem: ") == true)
    }
  #endif
}
