//! A real drive beside the simulated one: its counters before and after, from nvme-cli's JSON.
//!
//! Host bytes stand in the SMART log (`data_units_written`, in 512 000 bytes) or in the FDP statistics (`hbmw`); media bytes only in the OCP
//! extended log (C0h, `Physical media units written`) and in the FDP statistics (`mbmw`). Files of several logs may be joined into
//! one object, or be given as a list of objects.

use serde::Serialize;
use serde_json::Value;

/// What two readings of a drive's counters say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Host bytes between the readings.
    pub host_bytes: u64,
    /// Media bytes between them; none where no log has them.
    pub media_bytes: Option<u64>,
    /// Media bytes over host bytes.
    pub write_amplification: Option<f64>,
    /// What the drive as it is comes to in the simulation, in bytes.
    pub simulated: Option<f64>,
    /// Over-provisioning (T-U)/U with which the simulation comes to the measured value; none where none of those tried does.
    pub over_provisioning_that_explains: Option<f64>,
    /// What this means, in words.
    pub text: String,
}

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    host_bytes: Option<u64>,
    media_bytes: Option<u64>,
}

/// Bytes of a data unit of the SMART log.
const DATA_UNIT_BYTES: u64 = 512_000;

impl Reading {
    fn take(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::Array(values) => values.iter().try_for_each(|value| self.take(value)),
            Value::Object(object) => {
                for (key, value) in object {
                    let plain: String =
                        key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
                    match plain.as_str() {
                        "dataunitswritten" => {
                            self.host_bytes =
                                self.host_bytes.or(Some(number(key, value)?.saturating_mul(DATA_UNIT_BYTES)))
                        }
                        "hbmw" | "hostbyteswithmetadatawritten" => self.host_bytes = Some(number(key, value)?),
                        "mbmw" | "mediabyteswithmetadatawritten" => {
                            self.media_bytes = self.media_bytes.or(Some(number(key, value)?))
                        }
                        "physicalmediaunitswritten" => self.media_bytes = Some(number(key, value)?),
                        _ if value.is_object() || value.is_array() => self.take(value)?,
                        _ => {}
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A counter: a number, a text of digits, or the two halves of 128 bits.
fn number(key: &str, value: &Value) -> Result<u64, String> {
    let of = |value: &Value| value.as_u64().or_else(|| value.as_str()?.trim().replace(',', "").parse().ok());
    let found = match value {
        Value::Object(halves) => match (halves.get("hi").and_then(of), halves.get("lo").and_then(of)) {
            (Some(0), Some(low)) => Some(low),
            _ => None,
        },
        value => of(value),
    };
    found.ok_or_else(|| format!("\"{key}\" is {value}, and a whole number below 2^64 is expected"))
}

/// Host and media bytes between two readings, each the text of a file of JSON.
///
/// # Errors
/// No JSON, no counter of host writes, counters that run backwards or stand still.
pub fn calibrate(before: &str, after: &str) -> Result<Calibration, String> {
    let read = |text: &str, name: &str| -> Result<Reading, String> {
        let mut reading = Reading::default();
        let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        for value in values {
            let value = value.map_err(|error| format!("--smart-{name}: it is no JSON: {error}"))?;
            reading.take(&value).map_err(|problem| format!("--smart-{name}: {problem}"))?;
        }
        Ok(reading)
    };
    let (before, after) = (read(before, "before")?, read(after, "after")?);
    let (Some(first), Some(last)) = (before.host_bytes, after.host_bytes) else {
        return Err(
            "the files have no counter of host writes; write them with: nvme smart-log -o json DEVICE, and for the \
                    media's nvme ocp smart-add-log -o json DEVICE or nvme fdp stats -o json"
                .to_owned(),
        );
    };
    let host_bytes = last
        .checked_sub(first)
        .filter(|bytes| *bytes > 0)
        .ok_or("the host wrote nothing between the two files; give them in the order in which they were made")?;
    let media_bytes = match (before.media_bytes, after.media_bytes) {
        (Some(first), Some(last)) => {
            Some(last.checked_sub(first).ok_or("the media's counter runs backwards; are both files of one drive?")?)
        }
        _ => None,
    };
    let write_amplification = media_bytes.map(|media| media as f64 / host_bytes as f64);
    let text = match write_amplification {
        Some(_) => String::new(),
        None => "The SMART log counts what the host writes, not what the flash does: the write amplification of the real drive needs \
                 the OCP log (nvme ocp smart-add-log) or the FDP statistics (nvme fdp stats)."
            .to_owned(),
    };
    Ok(Calibration {
        host_bytes,
        media_bytes,
        write_amplification,
        simulated: None,
        over_provisioning_that_explains: None,
        text,
    })
}

impl Calibration {
    /// Puts the simulation beside: write amplification in bytes as it is, and with other over-provisionings, ascending.
    #[must_use]
    pub fn beside(mut self, simulated: Option<f64>, others: &[(f64, f64)]) -> Self {
        self.simulated = simulated;
        let (Some(measured), Some(simulated)) = (self.write_amplification, simulated) else { return self };
        // Write amplification falls with spare space: the value lies between the two that enclose it.
        self.over_provisioning_that_explains = others.windows(2).find_map(|pair| {
            let [(less, high), (more, low)] = [pair[0], pair[1]];
            (low <= measured && measured <= high && high > low)
                .then(|| less + (more - less) * (high - measured) / (high - low))
        });
        let explained = match self.over_provisioning_that_explains {
            Some(spare) => format!("an over-provisioning of {:.0} % would explain the difference", spare * 100.0),
            None => "no over-provisioning that was tried explains the difference".to_owned(),
        };
        self.text = match (measured / simulated - 1.0).abs() < 0.05 {
            true => format!(
                "The real drive wrote {measured:.2} bytes of flash for a byte of the host, the simulated one {simulated:.2}: they agree."
            ),
            false => format!(
                "The real drive wrote {measured:.2} bytes of flash for a byte of the host, the simulated one {simulated:.2}: {explained}, \
                 if the trace is what the drive did between the readings."
            ),
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_bytes_come_from_the_ocp_log_or_fdp_statistics() {
        let smart = |units: u64| format!("{{\"data_units_written\": {units}, \"percent_used\": 3}}");
        let ocp = |units: u64, media: u64| {
            format!("{}\n{{\"Physical media units written\": {{\"hi\": 0, \"lo\": {media}}}}}", smart(units))
        };
        let found = calibrate(&ocp(10, 1_000_000), &ocp(12, 3_560_000)).unwrap();
        assert_eq!((found.host_bytes, found.write_amplification), (1_024_000, Some(2.5)));
        let fdp = |host: u64, media: u64| format!("{{\"hbmw\": {host}, \"mbmw\": {media}, \"mbe\": 0}}");
        assert_eq!(calibrate(&fdp(0, 0), &fdp(1000, 1500)).unwrap().write_amplification, Some(1.5));
        let plain = calibrate(&smart(1), &smart(2)).unwrap();
        assert!(plain.write_amplification.is_none() && plain.text.contains("nvme ocp"));
    }

    #[test]
    fn readings_that_cannot_be_are_refused() {
        let smart = |units: u64| format!("{{\"data_units_written\": {units}}}");
        assert!(calibrate(&smart(2), &smart(1)).unwrap_err().contains("in the order"));
        assert!(calibrate("{}", &smart(1)).unwrap_err().contains("no counter"));
        assert!(calibrate("nothing", &smart(1)).unwrap_err().contains("--smart-before: it is no JSON"));
        assert!(calibrate("{\"data_units_written\": -1}", &smart(1)).unwrap_err().contains("whole number"));
    }

    #[test]
    fn spare_space_that_explains_a_measured_value_is_between_those_tried() {
        let found = calibrate("{\"hbmw\": 0, \"mbmw\": 0}", "{\"hbmw\": 10, \"mbmw\": 20}").unwrap();
        let found = found.beside(Some(3.0), &[(0.07, 3.0), (0.27, 1.0)]);
        assert!((found.over_provisioning_that_explains.unwrap() - 0.17).abs() < 1e-9);
        assert!(found.text.contains("17 %"), "{}", found.text);
    }
}
