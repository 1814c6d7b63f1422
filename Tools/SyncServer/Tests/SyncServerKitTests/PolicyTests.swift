import SyncServerKit
import Testing
import TidemarkSyncServer

@Suite("Policies for conflicts")
struct PolicyTests {
  /// The verdict on the second of two puts of a key that know nothing of each other.
  private func verdict(
    of key: String, in database: String, by replicas: (UInt8, UInt8), on server: TestServer
  ) async throws -> PushVerdict? {
    var last: PushVerdict?
    for byte in [replicas.0, replicas.1] {
      let replica = ReplicaID.test(byte)
      let hello = WireMessage.helloRequest(HelloRequest(replica: replica))
      _ = try await server.call(hello, in: database)
      var push = PushRequest.puts([key], by: replica)
      push.changes[0].content.value = [byte]
      push.changes[0].commitTime += UInt64(byte)
      guard
        case .pushAnswer(let answer) = try await server.call(.pushRequest(push), in: database)
          .answer
      else { throw Unexpected() }
      last = answer.mark.verdicts.last
    }
    return last
  }

  private func isApplied(_ verdict: PushVerdict?) -> Bool {
    if case .applied = verdict { true } else { false }
  }

  @Test("a database has those of its name, and where it has none those of all")
  func rules() async throws {
    try await TestServer.run {
      $0.policies = ["*/setting/=lastWriterWins", "notes/setting/=detect", "notes=lastWriterWins"]
    } _: { server in
      for (key, database, isMeant) in [
        ("a", "notes", true), ("setting/a", "notes", false), ("b", "tasks", false),
        ("setting/b", "tasks", true),
      ] {
        let replicas: (UInt8, UInt8) = key.hasPrefix("setting/") ? (3, 4) : (1, 2)
        let verdict = try await verdict(of: key, in: database, by: replicas, on: server)
        #expect(isApplied(verdict) == isMeant, "\(key) in \(database)")
      }
    }
  }

  @Test("one that was set stays until another one is")
  func stays() async throws {
    try await TestServer.inDirectory { directory in
      let runs: [(policies: [String], isApplied: Bool)] = [
        ([], false), (["notes=lastWriterWins"], true), ([], true), (["notes=detect"], false),
      ]
      for (index, run) in runs.enumerated() {
        try await TestServer.run(in: directory) {
          $0.policies = run.policies
        } _: { server in
          let replicas = (UInt8(2 * index + 1), UInt8(2 * index + 2))
          let verdict = try await verdict(
            of: "key/\(index)", in: "notes", by: replicas, on: server)
          #expect(isApplied(verdict) == run.isApplied, "run \(index)")
        }
      }
    }
  }

  @Test(
    "rules that make no sense are refused at the start",
    arguments: [
      ["notes"], ["notes=later"], ["=detect"], ["../x=detect"], ["a.b/c=detect"], ["notes="],
      ["notes=detect", "notes=lastWriterWins"], ["*/a=detect", "*/a=detect"],
    ])
  func wrong(policies: [String]) async throws {
    await #expect(throws: SettingsError.self) {
      try await TestServer.run {
        $0.policies = policies
      } _: { _ in
      }
    }
  }
}
