import Testing
import TidemarkTestKit

@Suite("Scripts")
struct ScriptTests {
  @Test("the same seed gives the same script, another seed another one")
  func repeats() {
    #expect(Script(seed: 5) == Script(seed: 5))
    #expect(Set((0..<50).map { Script(seed: $0, count: 20) }).count == 50)
    #expect(Script(seed: 1, count: 0).steps.isEmpty)
    #expect(Script(seed: 1, count: 77).steps.count == 77)
  }

  @Test("every kind of step comes up, in every profile that allows it")
  func kinds() {
    for profile in ScriptProfile.all {
      let profile = profile.withCrashes()
      let kinds = Script(seed: 3, count: 6000, profile: profile).kinds
      let allowed = ScriptStep.Kind.allCases.filter { profile.weights[$0] != 0 }
      #expect(allowed.filter { kinds[$0] == nil } == [], "\(profile.name)")
      #expect(allowed.count >= ScriptStep.Kind.allCases.count - 2)
    }
    let without = Script(seed: 3, count: 5000, profile: .mixed.without([.put, .clear])).kinds
    #expect(without[.put] == nil)
    #expect(without[.clear] == nil)
    #expect(without[.kill] == nil)
  }

  @Test("the seed picks among all profiles")
  func profiles() {
    let names = Set((0..<200).map { ScriptGenerator(seed: $0).profile.name })
    #expect(names == Set(ScriptProfile.all.map(\.name)))
  }

  @Test("keys, values and labels are within the bounds of a store and reach them")
  func bounds() {
    var longestKey = 0
    var shortestKey = Int.max
    var mostLabels = 0
    var longestLabel = 0
    var emptyValues = 0
    var isNoText = false
    for profile in ScriptProfile.all {
      for step in Script(seed: 8, count: 400, profile: profile).steps {
        for write in step.writes {
          longestKey = max(longestKey, write.key.count)
          shortestKey = min(shortestKey, write.key.count)
          mostLabels = max(mostLabels, write.labels.count)
          longestLabel = max(longestLabel, write.labels.map(\.count).max() ?? 0)
          if write.operation == .put, write.value.count == 0 { emptyValues += 1 }
          #expect(write.value.count <= profile.maximumValueBytes)
          #expect(Set(write.labels).count == write.labels.count)
          if String(validating: write.key.bytes.prefix(200), as: UTF8.self) == nil {
            isNoText = true
          }
        }
      }
    }
    #expect(longestKey == 65_535)
    #expect(shortestKey == 1)
    #expect(mostLabels > 30 && mostLabels <= 64)
    #expect(longestLabel > 200 && longestLabel <= 255)
    #expect(emptyValues > 10)
    #expect(isNoText)
  }

  @Test("bytes are as many as they say, and long ones repeat")
  func bytes() {
    for bytes in [
      ScriptBytes.literal([1, 2]), .run(7, count: 1000), .noise(seed: 3, count: 999),
      .words(seed: 4, count: 12_345), .words(seed: 4, count: 0),
    ] {
      #expect(bytes.bytes.count == bytes.count)
      #expect(bytes.bytes == bytes.bytes)
    }
    #expect(
      ScriptBytes.noise(seed: 3, count: 99).bytes != ScriptBytes.noise(seed: 4, count: 99).bytes)
    #expect(ScriptBytes("é").bytes == [0xc3, 0xa9])
  }

  @Test("a script that is written as text is read back as it was")
  func text() throws {
    for profile in ScriptProfile.all {
      let script = Script(seed: 11, count: 500, profile: profile.withCrashes())
      #expect(try Script(parsing: script.description) == script, "\(profile.name)")
    }
  }

  @Test("a script's text can be written by hand, and mistakes are told with their line")
  func mistakes() throws {
    let script = try Script(
      parsing: """
        # Two keys, one batch.
        seed 9
        put t:a w:3*250 label=t:x label=x:ff00 hash=t:h
        batch delete t:a ; put x:00 t:

        scan prefix=t:a all=t:x reversed limit=3
        """)
    #expect(script.seed == 9)
    #expect(script.steps.count == 3)
    #expect(script.steps[0].writes[0].labels == [ScriptBytes("x"), .literal([0xff, 0])])
    #expect(script.steps[1].writes.map(\.operation) == [.delete, .put])
    for (text, line) in [
      ("put", 1), ("clear\nput t:a", 2), ("put t:a q:b", 1), ("get x:0", 1), ("get x:zz", 1),
      ("undo x", 1), ("jump 3", 1), ("clear now", 1), ("put t:a r:1*99999999999", 1),
      ("scan limit=-1", 1), ("scan color=t:red", 1), ("if maybe put t:a t:b", 1),
      ("durability some", 1), ("batch put t:a t:b ; get t:a", 1), ("put t:a t:b x=y", 1),
    ] {
      let error = #expect(throws: ScriptError.self) { try Script(parsing: text) }
      #expect(error?.line == line, "\(text)")
    }
  }

  @Test("points mean sequences from the oldest to the newest")
  func points() {
    #expect(ScriptPoint(permille: 0).sequence(to: 500) == 0)
    #expect(ScriptPoint(permille: 500).sequence(to: 500) == 250)
    #expect(ScriptPoint(permille: 1000).sequence(to: 500) == 500)
    #expect(ScriptPoint(permille: 5000).sequence(from: 10, to: 20) == 20)
    #expect(ScriptPoint(permille: -3).sequence(from: 10, to: 20) == 10)
    #expect(ScriptPoint(permille: 1000).sequence(to: .max) == .max)
    #expect(ScriptPoint(permille: 500).sequence(from: 9, to: 3) == 3)
  }
}

@Suite("Shrinking")
struct ShrinkTests {
  @Test("a step that a failure does not need is left out")
  func steps() {
    let key = ScriptBytes("needle")
    var script = Script(seed: 2, count: 300, profile: .mixed)
    script.steps.insert(.write(ScriptWrite(.put, key, .noise(seed: 1, count: 5000))), at: 100)
    script.steps.insert(.compact, at: 200)
    let small = shrink(script) { candidate in
      let put = candidate.steps.firstIndex { $0.writes.contains { $0.key == key } }
      let compact = candidate.steps.lastIndex { $0 == .compact }
      guard let put, let compact else { return false }
      return put < compact
    }
    #expect(small.steps == [.write(ScriptWrite(.put, key)), .compact])
    #expect(small.seed == 2)
  }

  @Test("values, keys, labels and batches are made as small as the failure allows")
  func contents() {
    let script = Script(seed: 6, count: 200, profile: .mixed)
    let small = shrink(script) { candidate in
      candidate.steps.contains { step in
        step.writes.contains { $0.value.count >= 300 && $0.labels.count >= 2 }
      }
    }
    #expect(small.steps.count == 1)
    #expect(small.steps[0].writes.count == 1)
    #expect(small.steps[0].writes[0].value.count == 300)
    #expect(small.steps[0].writes[0].labels.count == 2)
    #expect(small.steps[0].writes[0].key.count == 1)
  }

  @Test("the result fails, even when tries run out")
  func attempts() {
    let script = Script(seed: 7, count: 300, profile: .mixed)
    var calls = 0
    func fails(_ candidate: Script) -> Bool {
      calls += 1
      return (candidate.kinds[.put] ?? 0) >= 7
    }
    #expect(fails(shrink(script, attempts: 40, fails: fails)))
    #expect(calls <= 41)
    #expect(shrink(script, fails: fails).steps.count == 7)
  }

  @Test("a script that does not fail is given back as it is")
  func innocent() {
    let script = Script(seed: 7, count: 30)
    #expect(shrink(script) { _ in false } == script)
  }
}
