internal import Tidemark
internal import TidemarkSync

extension PeerConformance {
  /// Checks of the verdicts on changes.
  static let verdictChecks: [Check] = [
    Check("a change upon what its key holds is applied, another one is told of the conflict") {
      bench in
      var a = try await bench.writer(1)
      var b = try await bench.writer(2)
      let first = try await bench.push(&a, a.put("k", "1"))
      guard case .applied(let place)? = first.first else {
        throw Broken("the first change of a key is \(first)")
      }
      let late = try await bench.push(&b, b.put("k", "late"))
      guard case .conflict? = late.first else { throw Broken("a late change is \(late)") }
      try bench.expect(late.first?.place, is: place, "where the conflicting entry stands")
      let upon = try await bench.push(&b, b.put("k", "2", base: .position(place)))
      try bench.expect(upon.map(\.name), is: ["applied"], "a change upon what stands there")
      try bench.expect(try await bench.value("k", a.replica), is: "2", "what the key holds")
      let deleted = try await bench.push(&a, a.delete("k", base: .position(place)))
      try bench.expect(
        deleted.map(\.name), is: ["conflict"], "a delete upon what is there no more")
    },
    Check("changes upon own earlier operations are applied, also within one batch") { bench in
      var a = try await bench.writer(1)
      let first = a.put("k", "1")
      try await bench.push(&a, first)
      let second = a.put("k", "2", base: .operation(sequence: first.sequence))
      let third = a.put("k", "3", base: .operation(sequence: second.sequence))
      let fourth = a.delete("l", base: .absent)
      let verdicts = try await bench.push(&a, second, third, fourth)
      try bench.expect(
        verdicts.map(\.name), is: ["applied", "applied", "duplicate"], "the answer")
      try bench.expect(try await bench.value("k", a.replica), is: "3", "what the key holds")
    },
    Check("equal content, and a delete of what is gone, is a duplicate") { bench in
      var a = try await bench.writer(1)
      var b = try await bench.writer(2)
      let labels: [EntryLabel] = ["x"]
      let place = try await bench.push(&a, a.put("k", "1", labels: labels))[0].place
      let same = try await bench.push(&b, b.put("k", "1", labels: labels))
      try bench.expect(same.map(\.name), is: ["duplicate"], "a put of what is there")
      try bench.expect(same[0].place, is: place, "where the same stands")
      let other = try await bench.push(&b, b.put("k", "1"))
      try bench.expect(other.map(\.name), is: ["conflict"], "a put with other labels")
      try await bench.push(&a, a.delete("k", base: .position(place ?? .beginning)))
      let again = try await bench.push(&b, b.delete("k", base: .position(place ?? .beginning)))
      try bench.expect(again.map(\.name), is: ["duplicate"], "a delete of what is gone")
      let anew = try await bench.push(&b, b.put("k", "2"))
      try bench.expect(anew.map(\.name), is: ["applied"], "a put where a delete stands")
    },
    Check("of an atomic group all changes are applied, or none") { bench in
      var a = try await bench.writer(1)
      var b = try await bench.writer(2)
      try await bench.push(&b, b.put("taken", "x"))
      let verdicts = try await bench.push(
        &a, a.put("g1", "1", group: 1), a.put("alone", "1"), a.put("h1", "1", group: 2),
        a.put("taken", "mine", group: 1), a.put("h2", "1", group: 2))
      try bench.expect(
        verdicts.map(\.name), is: ["aborted", "applied", "applied", "conflict", "applied"],
        "the answer")
      try bench.expect(try await bench.value("g1", a.replica), is: nil, "an aborted change")
      try bench.expect(try await bench.value("h1", a.replica), is: "1", "an applied one")
    },
  ].map { Check($0.description, needs: [.numbers], $0.body) }
}
