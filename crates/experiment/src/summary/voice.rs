//! Quality of a telephone call whose packets have the delays and losses of a source: the E-model of ITU-T G.107
//! (06/2015), section 7. Beside delay, loss and codec, every parameter has its default of table 2 there.

use libm::{exp, log10, pow, sqrt};
use spec::CodecSpec;
use units::Histogram;

/// IPv4, UDP and RTP headers.
const HEADER_BYTES: u32 = 20 + 8 + 12;

/// Parts of packets, in a thousand, that a playout buffer may wait for.
const PLAYOUT_PER_MILLE: [u64; 8] = [500, 750, 900, 950, 975, 990, 995, 999];

/// A codec as the E-model knows it.
struct Codec {
    /// Equipment impairment without loss, Ie.
    impairment: f64,
    /// Robustness against random loss, Bpl.
    robustness: f64,
    rate_bps: f64,
    /// Speech that it needs beside that of a packet, ms.
    look_ahead_ms: f64,
}

/// Of the codecs; Ie and Bpl are the planning values of ITU-T G.113, appendix I, table I.4.
fn codec(spec: CodecSpec) -> Codec {
    match spec {
        CodecSpec::G711 => Codec { impairment: 0.0, robustness: 25.1, rate_bps: 64e3, look_ahead_ms: 0.0 },
        CodecSpec::G711WithoutPlc => Codec { impairment: 0.0, robustness: 4.3, rate_bps: 64e3, look_ahead_ms: 0.0 },
        CodecSpec::G729a => Codec { impairment: 11.0, robustness: 19.0, rate_bps: 8e3, look_ahead_ms: 5.0 },
    }
}

/// Estimate of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Transmission rating R, to a tenth.
    pub rating: f64,
    /// Mean opinion score of a conversation, to a hundredth.
    pub mos: f64,
    /// Delay from mouth to ear: a packet's speech, the codec's look-ahead, the network and the playout buffer, s.
    pub delay_s: f64,
}

/// The estimate for packets of `bytes`, of which the share `loss` was lost and the others had `delays`; None without
/// any. Its playout buffer is the one that suits the call best in hindsight: packets later than it waits for are lost
/// to the ear. Losses are taken for random (BurstR = 1): those of one call among several are far apart.
pub fn call(spec: CodecSpec, bytes: u32, loss: f64, delays: &Histogram) -> Option<Call> {
    let codec = codec(spec);
    let packet_ms = f64::from(bytes.saturating_sub(HEADER_BYTES)) * 8e3 / codec.rate_bps;
    let in_time = |per_mille: u64| {
        let delay_ns = delays.quantile(per_mille)?;
        Some((delay_ns, if Some(delay_ns) == delays.max() { 1.0 } else { per_mille as f64 / 1e3 }))
    };
    let longest = delays.max().map(|delay_ns| (delay_ns, 1.0));
    let playouts = PLAYOUT_PER_MILLE.into_iter().filter_map(in_time).chain(longest);
    let estimates = playouts.map(|(delay_ns, share)| {
        let delay_ms = packet_ms + codec.look_ahead_ms + delay_ns as f64 / 1e6;
        (rating(delay_ms, 100.0 * (1.0 - (1.0 - loss) * share), &codec), delay_ms)
    });
    let (rating, delay_ms) = estimates.max_by(|a, b| a.0.total_cmp(&b.0))?;
    // Rounded: the model is not more exact, and a last digit of libm would be one of the record.
    Some(Call { rating: round(rating, 10.0), mos: round(opinion(rating), 100.0), delay_s: delay_ms / 1e3 })
}

fn round(value: f64, per_unit: f64) -> f64 {
    (value * per_unit).round() / per_unit
}

// Parameters of table 2, by their names there, in dB, dBm0p, dB(A) and qdu.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
const STMR: f64 = 15.0;
const LSTR: f64 = 18.0;
const DS: f64 = 3.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
const QDU: f64 = 1.0;
const NC: f64 = -70.0;
const NFOR: f64 = -64.0;
const PS: f64 = 35.0;
const PR: f64 = 35.0;

/// Transmission rating R at a delay from mouth to ear of `delay_ms` and a loss of `lost_percent`.
fn rating(delay_ms: f64, lost_percent: f64, codec: &Codec) -> f64 {
    // 7.2: the basic signal-to-noise ratio.
    let olr = SLR + RLR;
    let nos = PS - SLR - DS - 100.0 + 0.004 * square(PS - olr - DS - 14.0);
    let pre = PR + 10.0 * log10(1.0 + db(10.0 - LSTR));
    let nor = RLR - 121.0 + pre + 0.008 * square(pre - 35.0);
    let noise = 10.0 * log10(db(NC) + db(nos) + db(nor) + db(NFOR + RLR));
    let basic = 15.0 - 1.5 * (SLR + noise);
    // 7.5: losses, and a codec's own impairment; BurstR = 1.
    let Codec { impairment, robustness, .. } = *codec;
    let equipment = impairment + (95.0 - impairment) * lost_percent / (lost_percent + robustness);
    basic - simultaneous(olr, noise, basic, delay_ms) - delayed(noise, basic, delay_ms) - equipment
}

/// 7.3: impairments that come with the voice signal, Is.
fn simultaneous(olr: f64, noise: f64, basic: f64, delay_ms: f64) -> f64 {
    let xolr = olr + 0.2 * (64.0 + noise - RLR);
    let loudness = 20.0 * (pow(1.0 + pow(xolr / 8.0, 8.0), 1.0 / 8.0) - xolr / 8.0);
    let stmr = -10.0 * log10(db(-STMR) + exp(-delay_ms / 4.0) * db(-TELR));
    let root = |x: f64, power: f64| pow(1.0 + pow(x, power), 1.0 / power);
    let sidetone = 12.0 * root((stmr - 13.0) / 6.0, 8.0)
        - 28.0 * root((stmr + 1.0) / 19.4, 35.0)
        - 13.0 * root((stmr - 3.0) / 33.0, 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * log10(QDU);
    let g = 1.07 + 0.258 * q + 0.0602 * square(q);
    let y = (basic - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    loudness + sidetone + 15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z))
}

/// 7.4: impairments by delay, Id: talker echo, listener echo, and the delay itself.
fn delayed(noise: f64, basic: f64, delay_ms: f64) -> f64 {
    // Below 1 ms talker echo is sidetone.
    let talker = if delay_ms < 1.0 {
        0.0
    } else {
        let terv = TELR - 40.0 * log10((1.0 + delay_ms / 10.0) / (1.0 + delay_ms / 150.0))
            + 6.0 * exp(-0.3 * square(delay_ms));
        let (without, with) = (-1.5 * (noise - RLR), 80.0 + 2.5 * (terv - 14.0));
        let half = (without - with) / 2.0;
        (half + sqrt(square(half) + 100.0) - 1.0) * (1.0 - exp(-delay_ms))
    };
    let with = 10.5 * (WEPL + 7.0) * pow(2.0 * delay_ms + 1.0, -0.25);
    let half = (basic - with) / 2.0;
    let listener = half + sqrt(square(half) + 169.0);
    let itself = if delay_ms <= 100.0 {
        0.0
    } else {
        let x = log10(delay_ms / 100.0) / log10(2.0);
        let sixth = |x: f64| pow(1.0 + pow(x, 6.0), 1.0 / 6.0);
        25.0 * (sixth(x) - 3.0 * sixth(x / 3.0) + 2.0)
    };
    talker + listener + itself
}

/// Annex B: the mean opinion score of a rating.
fn opinion(rating: f64) -> f64 {
    let rating = rating.clamp(0.0, 100.0);
    (1.0 + 0.035 * rating + rating * (rating - 60.0) * (100.0 - rating) * 7e-6).max(1.0)
}

fn db(level: f64) -> f64 {
    pow(10.0, level / 10.0)
}

fn square(x: f64) -> f64 {
    x * x
}

#[cfg(test)]
mod tests {
    use super::*;

    const G711: Codec = Codec { impairment: 0.0, robustness: 25.1, rate_bps: 64e3, look_ahead_ms: 0.0 };

    #[test]
    fn defaults_have_the_rating_that_g_107_states() {
        // G.107, 7.7: "R = 93.2" for all default values; annex B's curve has 4.41 there.
        let rating = rating(0.0, 0.0, &G711);
        assert_eq!(round(rating, 10.0), 93.2);
        assert_eq!(round(opinion(rating), 100.0), 4.41);
    }

    #[test]
    fn scores_of_ratings_are_those_of_g_109_and_annex_b() {
        // G.107, table B.1: the lower limits of categories of satisfaction.
        for (rating, mos) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((opinion(rating) - mos).abs() < 0.01, "{rating}: {}", opinion(rating));
        }
        assert_eq!((opinion(-5.0), opinion(0.0), opinion(120.0)), (1.0, 1.0, 4.5));
    }

    #[test]
    fn delay_and_loss_cost_as_much_as_the_published_fits_to_the_model() {
        // Cole and Rosenbluth (2001): Id = 0.024 d + 0.11 (d - 177.3) H(d - 177.3), fitted to G.107 with its defaults.
        let clear = rating(0.0, 0.0, &G711);
        for delay in [50.0, 100.0, 150.0, 200.0, 300.0] {
            let fit = 0.024 * delay + 0.11 * f64::max(delay - 177.3, 0.0);
            let cost = clear - rating(delay, 0.0, &G711);
            assert!((cost - fit).abs() < 0.5, "{delay} ms: {cost} for {fit}");
        }
        // Ie-eff = 95 x 2 / (2 + 25.1) = 7.01.
        assert!((clear - rating(0.0, 2.0, &G711) - 7.011).abs() < 1e-3);
        let g729a = codec(CodecSpec::G729a);
        assert!((clear - rating(0.0, 0.0, &g729a) - 11.0).abs() < 1e-9);
    }

    #[test]
    fn the_playout_buffer_waits_for_late_packets_as_long_as_that_pays() {
        let mut delays = Histogram::default();
        for _ in 0..990 {
            delays.record(20_000_000);
        }
        let even = call(CodecSpec::G711, 200, 0.0, &delays).unwrap();
        assert_eq!(even.delay_s, 0.040, "20 ms of speech in a packet of 200 B, 20 ms on the way");
        // 1 % of all a second late: to wait for them costs more than to do without.
        for _ in 0..10 {
            delays.record(1_000_000_000);
        }
        let late = call(CodecSpec::G711, 200, 0.0, &delays).unwrap();
        assert!((late.delay_s - 0.040).abs() < 1e-4, "{late:?}");
        assert!((even.rating - late.rating - 95.0 / 26.1).abs() < 0.11, "{even:?} {late:?}");
        assert_eq!(call(CodecSpec::G711, 200, 0.0, &Histogram::default()), None);
    }
}
