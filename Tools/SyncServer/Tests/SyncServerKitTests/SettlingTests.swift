import Testing
import TidemarkSyncServer

@testable import SyncServerKit

@Suite("Answers of the server and the disk", .timeLimit(.minutes(20)))
struct SettlingTests {
  private func greet(_ server: TestServer, _ replica: ReplicaID) async throws {
    let hello = WireMessage.helloRequest(HelloRequest(replica: replica))
    #expect(try await server.call(hello).status == 200)
  }

  @Test("a push is answered once it is on the disk")
  func settled() async throws {
    try await TestServer.run { server in
      let writer = ReplicaID.test(1)
      try await greet(server, writer)
      let name = try #require(DatabaseName("notes"))
      let lease = try server.server.service.databases.lease(name, mayCreate: false)
      for number in 1...5 as ClosedRange<UInt64> {
        let push = WireMessage.pushRequest(.puts(["key"], by: writer, number: number))
        #expect(try await server.call(push).status == 200)
        // An answer to its writer tells of the push, and could go out at once.
        let look = ValuesRequest(replica: writer, keys: [Array("key".utf8)])
        #expect(lease.handler.isSettled(try lease.handler.stage(.valuesRequest(look))))
      }
    }
  }
  @Test("callers that push at the same time are each answered with what became of their changes")
  func together() async throws {
    try await TestServer.run { server in
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for byte in 1...16 as ClosedRange<UInt8> {
          tasks.addTask {
            let writer = ReplicaID.test(byte)
            try await greet(server, writer)
            for number in 1...5 as ClosedRange<UInt64> {
              let push = PushRequest.puts(["\(byte)-\(number)"], by: writer, number: number)
              guard case .pushAnswer(let answer) = try await server.call(.pushRequest(push)).answer
              else { throw Unexpected() }
              #expect(answer.mark.number == number && answer.mark.verdicts.count == 1)
              guard case .applied = answer.mark.verdicts.first else { throw Unexpected() }
            }
          }
        }
        try await tasks.waitForAll()
      }
      let keys = (1...16).flatMap { byte in (1...5).map { Array("\(byte)-\($0)".utf8) } }
      let look = WireMessage.valuesRequest(ValuesRequest(replica: .test(1), keys: keys))
      guard case .valuesAnswer(let values) = try await server.call(look).answer else {
        throw Unexpected()
      }
      #expect(Set(values.entries.map(\.key)) == Set(keys))
    }
  }

  @Test("a batch that comes on many connections at once is taken once, and each is told the same")
  func twice() async throws {
    try await TestServer.run { server in
      try await greet(server, .test(1))
      let push = WireMessage.pushRequest(.puts(["key"], by: .test(1)))
      let answers = try await withThrowingTaskGroup(of: WireMessage.self) { tasks in
        for _ in 0..<8 { tasks.addTask { try await server.call(push).answer } }
        return try await tasks.reduce(into: []) { $0.append($1) }
      }
      let marks = answers.compactMap { answer -> PushAnswer? in
        if case .pushAnswer(let answer) = answer { answer } else { nil }
      }
      #expect(marks.count == 8)
      #expect(marks.allSatisfy { $0.mark == marks[0].mark && $0.range.head == marks[0].range.head })
    }
  }

  @Test("a caller that hangs up before its answer holds up no other one, and its change is kept")
  func hangsUp() async throws {
    try await TestServer.run { server in
      for byte in 1...2 as ClosedRange<UInt8> { try await greet(server, .test(byte)) }
      for number in 1...20 as ClosedRange<UInt64> {
        let gone = PushRequest.puts(["gone \(number)"], by: .test(1), number: number)
        let body = try WireCoder().encode(.pushRequest(gone))
        try await RawConnection.open(to: server.port) { connection in
          try await connection.request(
            "POST", "/notes/v1/push", [("Content-Type", WireFrame.contentType)], body: body)
        }
        let other = PushRequest.puts(["stays \(number)"], by: .test(2), number: number)
        #expect(try await server.call(.pushRequest(other)).status == 200)
        // The same batch again: taken before or now, it stands there.
        guard case .pushAnswer(let answer) = try await server.call(.pushRequest(gone)).answer else {
          throw Unexpected()
        }
        #expect(answer.mark.number == number)
      }
    }
  }
}
